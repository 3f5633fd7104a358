"""Delayed entries of a shared subscription."""
