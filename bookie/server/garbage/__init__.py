"""Garbage collection: entries of deleted ledgers, and entry logs that few live ones are left in."""
