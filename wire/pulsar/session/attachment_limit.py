"""What is attached over one connection: how many there may be, and what is left when it is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import BrokerError, NotAllowed

if TYPE_CHECKING:
    from magnetar.core.ledger.read.tail_cache import Slice

ATTACHED_MAX: Final = 100_000
"""Clients keep one connection for all they have, so it is far above what any of them needs."""


def check_attached(attached: Sized, coming: Sized) -> None:
    """Raise if there is no room for one more; those that are being attached count, too."""
    if len(attached) + len(coming) >= ATTACHED_MAX:
        raise NotAllowed(f"a connection may have at most {ATTACHED_MAX} producers or consumers")


class DetachedSink:
    """Stands for a connection's producers and consumers when it is gone: nothing reaches them.

    A producer and its protocol's side know each other. With this in the place of the latter they go
    at once; else they would stay until garbage is looked for, which an idle server does not do.
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
