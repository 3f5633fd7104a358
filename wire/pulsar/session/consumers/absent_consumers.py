"""Consumers that the broker has closed and that are expected back: requests about them wait.

When a topic is unloaded or a subscription is reset, the client gets CLOSE_CONSUMER and subscribes
again. Requests that it sent in between name a consumer that is absent. Clients treat a refusal as
final, so such a request waits for the consumer that takes its place, as `core/broker/attachment.py`
does for clients that attach.

Invariant: a waiting request goes on when its consumer is back, is closed, is no longer remembered
(beyond `AWAY_MAX`), or is late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import ConsumerNotFound, NotReady

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.consumers.consume import AttachedConsumer

AWAY_MAX: Final = 1_000
"""Absent consumers that a connection remembers; beyond it, the oldest is forgotten."""


class AbsentConsumers:
    """The absent consumers of one connection. See the module's docstring."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[AttachedConsumer, trio.Event]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, consumer_id: int) -> AttachedConsumer | None:
        """The absent consumer with that id."""
        known = self._known.get(consumer_id)
        return known[0] if known is not None else None

    def left(self, attached: AttachedConsumer) -> None:
        """Remember a consumer that the broker has closed."""
        while len(self._known) >= AWAY_MAX:
            self.over(next(iter(self._known)))
        self._known[attached.id] = (attached, trio.Event())

    def over(self, consumer_id: int) -> None:
        """The consumer is back, or is no longer expected."""
        known = self._known.pop(consumer_id, None)
        if known is not None:
            known[1].set()

    def all_over(self) -> None:
        """Release all waiting requests: the connection is closed."""
        for consumer_id in list(self._known):
            self.over(consumer_id)

    async def back(self, consumer_id: int, deadline: float) -> None:
        """Wait until the consumer is back or no longer expected; `NotReady` at the deadline."""
        known = self._known.get(consumer_id)
        if known is None:
            raise ConsumerNotFound(f"consumer {consumer_id} is not attached")
        with trio.move_on_at(deadline) as waiting:
            await known[1].wait()
        if waiting.cancelled_caught:
            raise NotReady(f"consumer {consumer_id} was sent away and has not come back")
