"""Control packets as bytes, both ways. Pure."""
