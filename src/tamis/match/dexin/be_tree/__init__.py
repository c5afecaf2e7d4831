"""BE-Tree: the matcher, its tree, and the nodes that the tree is made of."""
