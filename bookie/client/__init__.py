"""The ledger client: LedgerStore over links to bookies."""
