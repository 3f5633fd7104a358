"""Paths of schemas: by topic, as Pulsar's tools ask for them."""
