"""A task of a query, in a worker: from ranges of ledgers to batches of rows."""
