"""Paths other than admin REST: lookup, health, metrics, the landing page."""
