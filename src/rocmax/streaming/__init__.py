"""Methods that see pairs or single rows, never a vector of scores."""
