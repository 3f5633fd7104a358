"""Producers of a topic: who may publish, and what was published before."""
