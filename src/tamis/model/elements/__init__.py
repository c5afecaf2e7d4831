"""Lists of structs, and conditions on their elements."""
