"""The matching tree of Gryphon (Aguilera and others, PODC 1999)."""
