"""Results: the records that measurements yield, and the files that store them."""
