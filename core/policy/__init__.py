"""Policies of namespaces and topics: what each is called, and what holds where it is not set."""
