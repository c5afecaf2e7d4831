"""Array structures that matchers share: NumPy and Numba only, each with `check()`."""
