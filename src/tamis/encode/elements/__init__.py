"""Elements of lists of structs: their numbered conditions, and their columns in tables."""
