"""The storage tier: journal, entry log, index, and the ledger client above them."""
