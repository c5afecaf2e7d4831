"""The algorithms of Le Subscribe (Fabret and others, 2000), and those that it compares with."""
