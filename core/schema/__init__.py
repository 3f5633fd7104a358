"""Schemas of topics: what they are, which may follow which, and their registry."""
