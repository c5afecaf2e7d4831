"""CESQL, the SQL expressions of CloudEvents, as conditions."""
