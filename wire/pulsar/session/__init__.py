"""What one Pulsar connection means to the broker.

`session.py` holds the state and the table of handlers; the other files hold the handlers, by what
they are about: `connect`, `lookup`, `produce`, `consume`, `query`.
"""

from wire.pulsar.session.session import Front, FrontOptions, PulsarSession

__all__ = ["Front", "FrontOptions", "PulsarSession"]
