"""Why a connection is not read: a bit for each reason, all of them here, so that no two are one.

Who pauses for a reason resumes for the same; the connection is read when none is left.
"""

from typing import Final

PAUSE_STORAGE: Final = 1 << 0
"""Storage is congested: no writing peer is read."""
PAUSE_PUBLISHES: Final = 1 << 1
"""Too many requests or publishes of this connection are under way."""
PAUSE_RATE: Final = 1 << 2
"""A publish rate is used up."""
PAUSE_STOP: Final = 1 << 3
"""The server stops: never resumed."""
PAUSE_STORING: Final = 1 << 4
"""Too many bytes of this connection are on their way to storage."""
PAUSE_MEMORY: Final = 1 << 5
"""The next frame has no room at the moment."""
PAUSE_REQUESTS: Final = 1 << 6
"""Too many requests of this connection are not answered."""
PAUSE_LATER: Final = 1 << 7
"""Too many bytes of this connection wait for work on what came before them."""
