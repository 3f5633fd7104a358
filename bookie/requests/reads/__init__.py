"""Reads of clients: their order, the memory for what they get, and polls that wait."""
