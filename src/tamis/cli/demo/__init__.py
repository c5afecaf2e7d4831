"""The demonstration: auctions matched live on Spark."""
