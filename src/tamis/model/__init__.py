"""What things mean: schemas, events, conditions, and the definition of truth."""
