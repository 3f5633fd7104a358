"""The log of a topic: a managed ledger, made of ledgers that end."""
