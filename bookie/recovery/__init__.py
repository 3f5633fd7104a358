"""Damage: finding it, rebuilding what can be rebuilt, reporting what is lost."""
