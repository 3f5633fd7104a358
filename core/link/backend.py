"""The backend of all sessions: the broker and its storage, as the link sees them.

Sessions give them work while they handle events; at the end of each sweep the link calls, in this
order:

    storage.begin_group()    appends are gathered: no task need be woken to write them
    broker.dispatch()        deliver entries that became readable
    broker.store()           append the messages of all producers, and acknowledgements
    storage.flush_group()    write one group to the journal
    storage.congested        decides whether connections that write are read

So the appends of sessions and of dispatch are in the group of the same sweep.
"""

from collections.abc import Callable
from typing import Final, Protocol

from magnetar.core.ports.group_commit import GroupCommit


class Backend(Protocol):
    """The broker. Plain calls, once for each sweep."""

    def dispatch(self) -> None:
        """Deliver to the subscriptions that have work."""
        ...

    def store(self) -> None:
        """Write all appends since the last call."""
        ...


class NoBackend:
    """The backend, and the storage, of a link before `serve`."""

    congested = False

    def dispatch(self) -> None: ...

    def store(self) -> None: ...

    def begin_group(self) -> None: ...

    def flush_group(self) -> None: ...


NO_BACKEND: Final = NoBackend()


def steps_of(storage: GroupCommit, backend: Backend) -> tuple[Callable[[], None], ...]:
    """The calls of a sweep, in their order. They are looked up once: to find a method behind a
    protocol costs more than most of these calls have to do.
    """
    return storage.begin_group, backend.dispatch, backend.store, storage.flush_group
