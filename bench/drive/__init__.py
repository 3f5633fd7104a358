"""Starts servers, loads them with `pulsarload`, and turns measurements into tables."""
