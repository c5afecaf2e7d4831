"""Tables as people have them: DataFrames, nested columns, and reads of single cells."""
