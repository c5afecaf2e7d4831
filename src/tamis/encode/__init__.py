"""The cloakroom: values leave their coats and go on as ordered int64 codes."""
