"""Transactions of producers, and what tools ask about them."""
