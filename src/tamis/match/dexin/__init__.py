"""DEXIN (2016), and the algorithms that it compares with."""
