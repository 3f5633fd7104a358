"""Consumers that were sent away and are expected back: questions about them wait until they are.

A topic is unloaded, a subscription is reset: the client hears so, and subscribes again. What it
sent meanwhile is about a consumer that is not there just now. Clients take a refusal for the last
word, so the question is put to the consumer that comes in its place, as `core.attaching` does for
those who attach.

Invariant: a request that waits goes on when its consumer is back, is closed, is forgotten (a
connection remembers so many), or is late.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.broker.attachment import ATTACH_SECONDS
from magnetar.core.kernel.errors import BrokerError, ConsumerNotFound, NotReady

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.consume import AttachedConsumer
    from magnetar.wire.pulsar.session.session import PulsarSession

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
        """It is back, or is not expected any more."""
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


async def ask(
    session: PulsarSession, consumer_id: int, answer: Callable[[AttachedConsumer], Awaitable[None]]
) -> None:
    """Have a question about a consumer answered; again, where the topic goes in the middle of it.

    `answer` leaves nothing behind where it fails.
    """
    deadline = trio.current_time() + ATTACH_SECONDS
    while True:
        attached = session.consumers.get(consumer_id)
        if attached is None:
            await session.away.back(consumer_id, deadline)
            continue
        topic = attached.topic
        try:
            await answer(attached)
            return
        except BrokerError:
            here = session.consumers.get(consumer_id) is attached
            if (here and not topic.fenced) or trio.current_time() >= deadline:
                raise
        if topic.fenced:
            await session.broker.let_go(topic, deadline)
