"""What one Pulsar connection means to the broker.

`session.py` holds the state and the table of handlers; the other files hold the handlers, by what
they are about: `connect`, `lookup`, `produce`, `consume`, `query`.
"""
