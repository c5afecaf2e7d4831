"""The experiments of Le Subscribe (Fabret, Llirbat, Pereira, Shasha, INRIA 2000)."""
