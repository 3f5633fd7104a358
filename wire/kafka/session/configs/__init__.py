"""Configs and access rules, shown and changed by request."""
