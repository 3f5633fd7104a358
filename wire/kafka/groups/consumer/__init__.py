"""Groups of the newer protocol: the server says who reads what, one heartbeat at a time."""
