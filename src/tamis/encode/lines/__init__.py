"""Lines of JSON as events, thousands at a time; where an attribute is in a table."""
