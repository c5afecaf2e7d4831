"""What the matchers inside a database share: statements, databases, and the matcher around them."""
