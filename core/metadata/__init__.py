"""Metadata stores: in memory for tests, embedded on disk; ZooKeeper comes with clusters."""
