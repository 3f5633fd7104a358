"""Pulsar's WebSocket API: JSON messages over WebSocket, as a client of the binary protocol."""
