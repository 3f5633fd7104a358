"""Clients beyond one connection: who is connected, and the sessions of those who are not."""
