"""Keys, tokens, and the names and passwords of people."""
