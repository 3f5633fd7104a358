"""The write-ahead journal: its format, its files, and the one thread that syncs it."""
