"""What users wait for: fits, predictions and commands next to what they would use instead."""
