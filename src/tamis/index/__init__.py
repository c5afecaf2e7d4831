"""Array structures shared by several matchers. They use only NumPy and Numba."""
