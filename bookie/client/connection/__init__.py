"""Connections to bookies over the network, one to each."""
