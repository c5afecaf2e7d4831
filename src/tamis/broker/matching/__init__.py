"""Inline matching: notifications as a function of the log, in memory and in files."""
