"""Teachers inside the vault: what they are, how they learn, and what they may be asked."""
