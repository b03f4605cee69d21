"""Networks by name, as values and as modules."""
