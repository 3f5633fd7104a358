"""Limits of connections, of memory, and of the time that a request holds up the loop."""
