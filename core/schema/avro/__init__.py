"""Schemas of Avro: parsed, compared, told apart. Pure."""
