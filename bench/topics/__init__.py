"""Figures of what topics have beside messages: schemas, delays."""
