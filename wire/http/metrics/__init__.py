"""`/metrics`: the figures, their names, and the text format."""
