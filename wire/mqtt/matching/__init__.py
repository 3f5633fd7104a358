"""Which filters a topic name matches, and which names a filter does. Pure."""
