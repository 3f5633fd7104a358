"""The bookie's ports on this system: the only modules that call the operating system."""
