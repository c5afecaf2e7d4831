"""Events in dicts, encoded by code that is made for their shape; events of any JSON."""
