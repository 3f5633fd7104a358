"""The compiled twins of this folder's parent, if they were built: `reading.pyx`, `writing.pyx`."""
