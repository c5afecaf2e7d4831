"""What clauses lie in: cells, buckets, families of bitmaps, and the packed table."""
