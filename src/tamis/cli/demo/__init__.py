"""The demonstration: the whole system on auctions."""
