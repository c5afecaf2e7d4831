"""What commands print: one module for each command with tables."""
