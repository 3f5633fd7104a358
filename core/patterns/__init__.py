"""Patterns of names that clients choose: parsed, and matched in linear time. Pure."""
