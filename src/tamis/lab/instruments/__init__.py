"""What measurements use: clocks, comparisons, the NumPy yardstick."""
