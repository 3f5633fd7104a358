"""The broker: topics, subscriptions, managed ledgers, catalog. It imports nothing of ours."""
