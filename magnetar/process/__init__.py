"""The process that a server runs in: its data directory, limits, memory, log and ready file."""
