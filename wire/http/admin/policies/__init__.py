"""What namespaces and topics decide: one path a policy."""
