"""The data structures that hold clauses: cells, buckets, bitmap families, the packed table."""
