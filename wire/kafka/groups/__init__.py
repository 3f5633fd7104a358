"""Consumer groups of the classic protocol: who is in, who leads, who was given what."""
