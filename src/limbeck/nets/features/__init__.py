"""Public maps of records to features."""
