"""What this process and its parts count, for `/metrics`."""
