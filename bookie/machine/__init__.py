"""The machine a bookie runs on: the only modules here that call the operating system."""
