"""The consumers of a connection."""
