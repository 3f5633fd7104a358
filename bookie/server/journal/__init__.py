"""The write-ahead journal: its files, its groups, and the writers that make them durable."""
