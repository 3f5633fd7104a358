"""Where clients come in: listening sockets, and the certificates of those with TLS."""
