"""Transactions: their coordinator, their participants, and how each ends in every log."""
