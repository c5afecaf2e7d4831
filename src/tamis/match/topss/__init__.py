"""The algorithms of TOPSS (Ashayer et al., 2002): counting in memory and in a database."""
