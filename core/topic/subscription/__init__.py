"""Subscriptions of a topic: cursor, consumers, and the dispatcher that serves them."""
