"""Metrics of the process, the link and the storage tier, for `/metrics`."""
