"""Keys and passwords from files and URLs, and the `Access` that they make."""
