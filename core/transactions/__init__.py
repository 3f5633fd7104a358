"""Transactions: what of a log belongs to one, who is in one, and how each ends everywhere."""
