"""What conditions would have matched of past events."""
