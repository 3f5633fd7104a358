"""Ledgers on several bookies of a cluster: quorums, ensembles, recovery."""
