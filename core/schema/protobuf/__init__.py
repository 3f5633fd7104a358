"""Schemas in protobuf's language: read, written, and compared."""
