"""The experiments of TOPSS (Ashayer, Leung, Jacobsen, Toronto 2002)."""
