"""The backend of all sessions: the broker and its storage, as the link sees them.

Sessions give them work while they handle events; at the end of each sweep the link has them finish
it:

    storage.begin_group()    no task need be woken to write: this does it
    broker.dispatch()        deliver what became readable
    broker.store()           append what all producers brought; acknowledgements of the above, too
    storage.flush_group()    one group for the journal
    storage.congested        whether connections that write are read on

In that order: what dispatch and sessions append goes into the group of the same sweep.
"""

from typing import Final, Protocol


class Backend(Protocol):
    """The broker. Plain calls, once for each sweep."""

    def dispatch(self) -> None:
        """Deliver to the subscriptions that have work."""
        ...

    def store(self) -> None:
        """Give storage what was appended since the last call."""
        ...


class NoBackend:
    """The backend, and the storage, of a link before `serve`."""

    congested = False

    def dispatch(self) -> None: ...

    def store(self) -> None: ...

    def begin_group(self) -> None: ...

    def flush_group(self) -> None: ...


NO_BACKEND: Final = NoBackend()
