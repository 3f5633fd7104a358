"""Entry logs: where checkpoints put entries for good."""
