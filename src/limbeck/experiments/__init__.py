"""Several runs with one purpose: curves over a setting, classes in stages, the demonstration."""
