"""The default matcher, `tamis`: it places each clause where it is cheapest to match."""
