"""The indexes: the locations of entries, and a row for each ledger."""
