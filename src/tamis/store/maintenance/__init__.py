"""Copying a log while it is in use, and erasing rows of it."""
