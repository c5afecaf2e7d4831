"""Logs of earlier formats: read, and rewritten in the current one."""
