"""Managed ledgers: the chain of ledgers of one topic, its cursors, cache and trimming."""
