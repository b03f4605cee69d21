"""Records that are read in pieces, because they would take more memory than is held."""
