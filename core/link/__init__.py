"""The link: one loop for the sockets of every protocol, bookie RPC included."""
