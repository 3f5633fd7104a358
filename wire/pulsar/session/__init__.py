"""The sessions of Pulsar connections.

`session.py` has the table of handlers; the other files have the handlers, by subject: `connect.py`,
`lookup.py`, `query.py`, `producers/`, `consumers/`.
"""
