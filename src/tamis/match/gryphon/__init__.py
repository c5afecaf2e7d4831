"""The matching tree of Gryphon (Aguilera et al., PODC 1999)."""
