"""How commands write to the terminal and read options."""
