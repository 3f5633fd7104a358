"""Ledgers in use: their state, and what clients over the network may do with them."""
