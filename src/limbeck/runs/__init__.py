"""A run: from a booked plan to a release, through any interruption."""
