"""Schemas in JSON Schema: read, and compared."""
