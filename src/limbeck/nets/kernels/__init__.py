"""What this machine does fast."""
