"""The experiments on expensive operators (Liu et al., DEBS 2007)."""
