"""Statistics of past events, and of what subscriptions match of them."""
