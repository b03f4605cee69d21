"""How a network learns from a small set."""
