"""The index of delayed entries that a log keeps on the disk."""
