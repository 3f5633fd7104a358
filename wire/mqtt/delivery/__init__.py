"""From stored messages to the subscribers' connections."""
