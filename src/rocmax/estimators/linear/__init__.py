"""Linear classifiers fitted to all rows at once."""
