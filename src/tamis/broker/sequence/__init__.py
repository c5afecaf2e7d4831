"""One sequence: requests get their places in the log, in groups."""
