"""The experiments on Gryphon's matching tree (Aguilera et al., PODC 1999)."""
