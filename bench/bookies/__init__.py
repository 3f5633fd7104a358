"""Bookies and gateways to be measured, and loads for them."""
