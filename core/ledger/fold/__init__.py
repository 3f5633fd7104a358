"""State that is derived from a log and survives restarts."""
