"""Group commit: what the event loop and storage ask of each other so that one sync stores what many
clients sent.

    loop -> storage   begin_group ... append, append ... flush_group, congested
    storage -> loop   begin ... done, done ... settle; soon

Both directions are plain calls on the loop, a few for each sweep and none for each message. Each
side is handed the other when it is made (`open_embedded`) or once before it runs (`Link.serve`);
nothing is set from outside later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class GroupCommit(Protocol):
    """Storage as the event loop sees it."""

    def begin_group(self) -> None:
        """The loop promises to call `flush_group` before it turns."""
        ...

    def flush_group(self) -> None:
        """Write what was appended since the last call, as one group."""
        ...

    @property
    def congested(self) -> bool:
        """Storage has too much waiting: connections that write have to wait.

        It becomes False by a delivery (between `EventLoop.begin` and `settle`), or else storage
        calls `EventLoop.soon`.
        """
        ...


class EventLoop(Protocol):
    """The loop of a server, as storage sees it."""

    def watch(self, fd: int, call: Callable[[], None], due: Callable[[], bool]) -> None:
        """Call whenever the descriptor is readable, as long as it is open. `due` says whether that
        is expected within a moment.
        """
        ...

    def begin(self) -> None:
        """Many results are about to be delivered, and then `settle` is called."""
        ...

    def settle(self) -> None:
        """All results are delivered: dispatch and send what they caused."""
        ...

    def soon(self) -> None:
        """Something has changed that the loop is to look at before long, `congested` for one."""
        ...
