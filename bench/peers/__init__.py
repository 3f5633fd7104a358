"""The servers we are measured against, started from the artifacts their own projects publish."""
