"""Runs that a seed repeats exactly: scheduling, time, network, threads, a metadata store."""
