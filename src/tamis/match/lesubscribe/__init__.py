"""The algorithms of Le Subscribe (Fabret et al., 2000) and the algorithms it compares with."""
