"""The release: what leaves the house, its certificate, and how both are read back."""
