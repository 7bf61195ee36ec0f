"""From a table to a model, a threshold, a comparison and a report."""
