"""BE-Tree: the matcher, its tree and the nodes of the tree."""
