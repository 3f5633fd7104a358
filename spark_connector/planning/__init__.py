"""What a query reads: which entries, divided among tasks, and how many at a time."""
