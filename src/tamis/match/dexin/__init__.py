"""DEXIN (2016) and the algorithms it compares with."""
