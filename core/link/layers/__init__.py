"""Wires under wires: TLS and WebSocket."""
