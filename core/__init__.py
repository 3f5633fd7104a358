"""The broker's core: topics, subscriptions, managed ledgers, catalog. It imports nothing of ours."""
