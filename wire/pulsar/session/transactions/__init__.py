"""Transactions: the requests to their coordinators, and SEND and ACK in them."""
