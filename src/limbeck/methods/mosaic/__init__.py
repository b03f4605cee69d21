"""Mosaic: a whole table from noised marginals."""
