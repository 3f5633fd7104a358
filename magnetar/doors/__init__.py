"""The doors: listening sockets, and certificates for those with TLS."""
