"""Linear classifiers fitted to the full training set."""
