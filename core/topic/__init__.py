"""Topics: producers, subscriptions and what happens between them."""
