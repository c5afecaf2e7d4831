"""The matchers that run inside a database: statements, databases and the common matcher."""
