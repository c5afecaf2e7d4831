"""The compiled parts of the schedulers: the graph of clauses, and the loops over an event."""
