"""The indexes: where entries are, and what is known of each ledger."""
