"""How a batch of events passes over the structures, as compiled loops."""
