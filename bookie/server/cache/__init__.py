"""Entries in memory: on their way to an entry log, or read from one."""
