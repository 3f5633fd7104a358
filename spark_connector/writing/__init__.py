"""Rows to topics: what `df.write` and `writeStream` do."""
