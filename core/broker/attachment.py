"""Attaches a client to a topic, and tries again if the topic is unloaded meanwhile.

Other tasks run between finding a topic and attaching to it, so the topic may be fenced meanwhile:
unloaded, deleted, or taken over. Most clients treat "not ready" in reply to an attach as final, so
they do not get it: the request continues with the topic that is loaded next, or created if that is
allowed.

Invariant: the error of a fenced topic is ignored, and the next attempt begins only when that topic
is unloaded, so there is no polling.
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
"""The longest wait for a topic; clients give up after 30 s, and should get the reason before."""


class NameCounts:
    """Counts the tasks that use a name."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._counts

    @contextmanager
    def one_more(self, name: str) -> Iterator[None]:
        """Count one more task for the length of a block."""
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
    by_order: bool = False,
    any_name: bool = False,
) -> None:
    """Attach to a topic, which is not deleted as idle meanwhile. `create`, `by_order` and
    `any_name` are those of `Broker.topic`.

    `take_place` is called again, with another topic, if its topic was fenced meanwhile. It changes
    nothing if it fails.
    """
    deadline = trio.current_time() + ATTACH_SECONDS
    with broker.attaching.one_more(name.full):
        while True:
            topic = await broker.topic(
                name, create=create, by_order=by_order, any_name=any_name, deadline=deadline
            )
            try:
                await take_place(topic)
                return
            except BrokerError:
                if not topic.fenced or trio.current_time() >= deadline:
                    raise
