"""`/metrics`: the figures, their names, and the formats."""
