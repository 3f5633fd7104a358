"""The broker: loaded topics, catalog, administration, and work that follows the clock."""
