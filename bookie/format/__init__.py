"""The bytes on disk and in metadata, in Apache BookKeeper's formats. Pure."""
