"""Files that commands read and write: conditions, events, matches. The suffix names the format."""
