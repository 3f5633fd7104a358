"""The limit of producers and consumers of one connection, and their sink when they have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import BrokerError, NotAllowed

if TYPE_CHECKING:
    from magnetar.core.ledger.read.tail_cache import Slice

ATTACHED_MAX: Final = 100_000
"""Far above what any client needs, though clients use one connection for everything."""


def check_attached(attached: Sized, coming: Sized) -> None:
    """Raise if the limit is reached; those that are being attached count, too."""
    if len(attached) + len(coming) >= ATTACHED_MAX:
        raise NotAllowed(f"a connection may have at most {ATTACHED_MAX} producers or consumers")


class DetachedSink:
    """The sink of producers and consumers that have left, which ignores all calls.

    A producer and its sink refer to each other. Replacing the sink frees both at once; otherwise
    they would stay until garbage collection, which does not run on an idle server.
    """

    congested = True

    def granted(self, epoch: int | None) -> None: ...

    def refused(self, error: BrokerError) -> None: ...

    def closed_by_broker(self) -> None: ...

    def deliver(
        self,
        part: Slice,
        redeliveries: Sequence[int] | None,
        partial: Mapping[int, int] | None,
    ) -> None: ...

    def activity(self, active: bool) -> None: ...

    def end_of_topic(self) -> None: ...


DETACHED: Final = DetachedSink()
