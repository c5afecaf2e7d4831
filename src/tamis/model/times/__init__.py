"""Times in conditions: durations, and `now`."""
