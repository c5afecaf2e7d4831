"""The matcher `tamis`, the default: each clause where it is cheapest."""
