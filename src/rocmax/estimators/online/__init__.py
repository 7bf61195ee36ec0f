"""Linear classifiers fitted to batches, pairs or single rows of a stream."""
