"""The reasons to pause reading a connection, one bit each.

The code that pauses for a reason resumes for the same one; the connection is read when none is
left.
"""

from typing import Final

PAUSE_STORAGE: Final = 1 << 0
"""Storage is congested: no writing peer is read."""
PAUSE_PUBLISHES: Final = 1 << 1
"""Too many requests or publishes of this connection are under way."""
PAUSE_RATE: Final = 1 << 2
"""A publish rate is exceeded."""
PAUSE_STOP: Final = 1 << 3
"""The server stops; never resumed."""
PAUSE_STORING: Final = 1 << 4
"""Too many bytes of this connection are being stored."""
PAUSE_MEMORY: Final = 1 << 5
"""There is no memory for the next frame."""
PAUSE_REQUESTS: Final = 1 << 6
"""Too many requests of this connection are in progress."""
PAUSE_LATER: Final = 1 << 7
"""Too many bytes of this connection wait for earlier requests."""
