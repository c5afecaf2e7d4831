"""The algorithms of TOPSS (Ashayer and others, 2002): counting in memory and in a database."""
