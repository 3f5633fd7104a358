"""Fetch, ListOffsets, DeleteRecords: where a log is read, and where it begins."""
