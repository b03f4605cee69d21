"""Other tools, each run by its own package in an environment of its own."""
