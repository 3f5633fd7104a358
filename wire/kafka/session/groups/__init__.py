"""Requests of consumer groups: members of both protocols, offsets, and tools."""
