"""Admin REST, lookup, health and metrics."""
