"""Policies of namespaces and topics: one path per policy."""
