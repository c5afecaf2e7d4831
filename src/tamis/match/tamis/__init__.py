"""The fast matcher: each clause where it is cheapest."""
