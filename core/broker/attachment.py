"""Attach to a topic that may be going away: wait until it is gone, then attach to its successor.

Other tasks run between finding a topic and attaching to it, so the topic may be fenced meanwhile:
unloaded, deleted, or taken over. Most clients treat "not ready" in reply to an attach as final, so
they do not see it: the same request goes on with the topic that is loaded next, or created if that
is allowed.

Invariant: the answer of a fenced topic is ignored, and an attempt begins only after the topic of
the last one is gone, so there is no polling.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.core.topic.topic import Topic

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker

ATTACH_SECONDS: Final = 20.0
"""Waiting for a topic to be gone or there. Clients give up after 30: they are to hear why."""


class NameCounts:
    """Names that are marked for a while, by however many at the same time."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._counts

    @contextmanager
    def one_more(self, name: str) -> Iterator[None]:
        """Marked for the length of a block."""
        self._counts[name] = self._counts.get(name, 0) + 1
        try:
            yield
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]


async def attach(
    broker: Broker,
    name: TopicName,
    take_place: Callable[[Topic], Awaitable[None]],
    *,
    create: bool = True,
) -> None:
    """Take a place in the topic of that name, which is not deleted as idle until that is done.

    `take_place` is called again, with another topic, if the one it was given was fenced meanwhile;
    it leaves nothing behind where it fails.
    """
    deadline = trio.current_time() + ATTACH_SECONDS
    with broker.attaching.one_more(name.full):
        while True:
            topic = await broker.topic(name, create=create, deadline=deadline)
            try:
                await take_place(topic)
                return
            except BrokerError:
                if not topic.fenced or trio.current_time() >= deadline:
                    raise
