"""The producers of a connection."""
