"""Metrics of the process, the link, the storage tier and MQTT clients, for `/metrics`."""
