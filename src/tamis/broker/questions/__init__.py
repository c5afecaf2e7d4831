"""What callers ask without changing anything: explanations and back-tests."""
