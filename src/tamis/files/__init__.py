"""Files: written whole or not at all, locked, checksummed, mapped. Used by everyone above."""
