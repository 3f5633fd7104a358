"""The patterns of topics that a connection watches."""
