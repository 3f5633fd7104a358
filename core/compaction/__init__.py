"""Compaction: of messages with the same key, a log keeps the last. Start at `compactor.py`."""
