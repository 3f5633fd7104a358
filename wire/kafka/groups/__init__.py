"""Consumer groups of both protocols, their offsets and their records."""
