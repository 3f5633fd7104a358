"""Consumers that were sent away and are expected back: questions about them wait until they are.

A topic is unloaded, a subscription is reset: the client hears so, and subscribes again. What it
sent meanwhile is about a consumer that is not there just now. Clients take a refusal for the last
word, so the question is put to the consumer that comes in its place, as `core.attaching` does for
those who attach.

Invariant: a request that waits goes on when its consumer is back, is closed, is forgotten (a
connection remembers so many), or is late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import ConsumerNotFound, NotReady

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.consumers.consume import AttachedConsumer

AWAY_MAX: Final = 1_000
"""Remembered per connection, the last ones."""


class AbsentConsumers:
    """Those of one connection. See the module's docstring."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[AttachedConsumer, trio.Event]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, consumer_id: int) -> AttachedConsumer | None:
        """Who was sent away by that number."""
        known = self._known.get(consumer_id)
        return known[0] if known is not None else None

    def left(self, attached: AttachedConsumer) -> None:
        """It is sent away, and its client knows."""
        while len(self._known) >= AWAY_MAX:
            self.over(next(iter(self._known)))
        self._known[attached.id] = (attached, trio.Event())

    def over(self, consumer_id: int) -> None:
        """The consumer is back, or is no longer expected."""
        known = self._known.pop(consumer_id, None)
        if known is not None:
            known[1].set()

    def all_over(self) -> None:
        """The connection is gone."""
        for consumer_id in list(self._known):
            self.over(consumer_id)

    async def back(self, consumer_id: int, deadline: float) -> None:
        """Return when waiting makes no more sense; `NotReady` if that takes too long."""
        known = self._known.get(consumer_id)
        if known is None:
            raise ConsumerNotFound(f"consumer {consumer_id} is not attached")
        with trio.move_on_at(deadline) as waiting:
            await known[1].wait()
        if waiting.cancelled_caught:
            raise NotReady(f"consumer {consumer_id} was sent away and has not come back")
