"""Where a server keeps ledgers and metadata: in itself, or on the bookies of a cluster."""
