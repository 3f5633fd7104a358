"""What stands between a socket and the application: who may ask, and HTTP/1.1 itself."""
