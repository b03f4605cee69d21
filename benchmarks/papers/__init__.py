"""The papers' tables as runnable specifications: what they print, how each figure is measured here, and the page with both."""
