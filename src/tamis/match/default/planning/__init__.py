"""Where clauses should lie: what events look like, what steps cost, what that decides."""
