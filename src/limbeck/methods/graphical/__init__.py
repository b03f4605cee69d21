"""Graphical models of tables: what AIM, MST and PrivBayes share."""
