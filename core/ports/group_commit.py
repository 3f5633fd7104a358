"""Group commit: the interface of event loop and storage, by which one sync stores the messages of
many clients.

    loop -> storage   begin_group ... append, append ... flush_group, congested
    storage -> loop   begin ... done, done ... settle; schedule_settle

Both directions are plain calls on the loop, a few for each sweep and none for each message. Each
side gets the other when it is made (`open_embedded`), or once before it runs (`Link.serve`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class GroupCommit(Protocol):
    """Storage as the event loop sees it."""

    def begin_group(self) -> None:
        """Begin a group; the loop calls `flush_group` before the end of its turn."""
        ...

    def flush_group(self) -> None:
        """Write all appends since the last call as one group."""
        ...

    @property
    def congested(self) -> bool:
        """Storage has too much waiting: connections that write have to wait.

        It becomes False by a delivery (between `EventLoop.begin` and `settle`), or else storage
        calls `EventLoop.schedule_settle`.
        """
        ...


class ThreadCalls(Protocol):
    """Calls that threads ask for, made on the loop."""

    expected: int
    """While it is not 0, one is expected within a moment. Changed on the loop."""

    def call(self, what: Callable[[], object]) -> bool:
        """Have a call made; from any thread. False if the loop does not run, or cannot hear."""
        ...


class EventLoop(Protocol):
    """The loop of a server, as storage sees it."""

    def watch(self, fd: int, call: Callable[[], None], due: Callable[[], bool]) -> None:
        """Make a call whenever the descriptor is readable, as long as it is open. `due` tells
        whether that is expected within a moment.
        """
        ...

    def begin(self) -> None:
        """Begin to deliver results; `settle` follows."""
        ...

    def settle(self) -> None:
        """All results are delivered: dispatch and send what they caused."""
        ...

    def schedule_settle(self) -> None:
        """Have the loop look again soon: `congested`, for example, has changed."""
        ...
