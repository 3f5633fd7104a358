"""Starts servers, loads them with `pulsarload`, and turns what was measured into tables."""
