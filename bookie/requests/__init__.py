"""Requests of clients over the network, carried out on the bookie."""
