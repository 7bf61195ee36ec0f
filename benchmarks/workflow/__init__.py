"""Reading, evaluation and reports on large tables."""
