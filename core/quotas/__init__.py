"""What each client may use of a server: limits by user, client id and address, and their use."""
