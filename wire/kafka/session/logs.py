"""Partitions as Kafka sees them: a topic of ours each, found by name and number.

`t` is `public/default/t`; a topic of ours without partitions has one, itself.

Invariant: a log that is returned is loaded and not on its way out; whoever waits in between asks
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from core.broker import Broker
from core.entry import header, kafka_form
from core.errors import TopicNotFound
from core.ledger.chain import Position
from core.ledger.places import Places
from core.names import TopicName
from core.topic.topic import Topic
from wire.kafka.batches import header_of
from wire.kafka.producers import Producers

RECALLED_ENTRIES: Final = 1_000
RECALLED_BYTES: Final = 4 * 1024 * 1024
"""Of the end of a log that is loaded, in one read."""


class Log:
    """One partition: a loaded topic, and what readers by offset want to know of it."""

    __slots__ = ("places", "producers", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.places = Places(topic.ledger)
        self.producers = Producers()

    @property
    def start(self) -> int:
        """The lowest offset that is still there."""
        return self.places.first_index

    @property
    def end(self) -> int:
        """The offset that the next message gets, as far as readers are concerned."""
        return self.topic.ledger.confirmed_index

    async def recall(self) -> None:
        """Learn from the end of the log which producers wrote it, and how far they were."""
        ledger, chain = self.topic.ledger, self.topic.ledger.chain
        position = self._recalled_from()
        while chain.has(position):
            part = await ledger.read(position, RECALLED_ENTRIES, RECALLED_BYTES)
            for payload in part.stored():
                head = header.read(payload)
                batch = kafka_form.batch_in(payload[head.size :])
                if batch is not None:
                    self.producers.note(header_of(batch), head.index - head.count + 1)
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    def _recalled_from(self) -> Position:
        """So many entries before the end, or the beginning."""
        chain, left = self.topic.ledger.chain, RECALLED_ENTRIES
        position = chain.confirmed
        for segment in reversed(chain.segments):
            entries = chain.last_entry_of(segment) + 1
            position = (segment.ledger_id, max(entries - left, 0))
            left -= entries
            if left <= 0:
                break
        return chain.normal(position)

    @contextmanager
    def watched(self, news: Callable[[], None]) -> Iterator[None]:
        """Have `news` called whenever there is more to read."""
        self.topic.watch(news)
        try:
            yield
        finally:
            self.topic.unwatch(news)


class Logs:
    """See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[tuple[str, int], Log] = {}

    def at_once(self, name: str, partition: int) -> Log | None:
        """A log that is loaded; None says nothing. Plain call."""
        found = self._known.get((name, partition))
        if found is None:
            return None
        if found.topic.fenced:
            del self._known[name, partition]
            return None
        return found

    async def get(self, name: str, partition: int) -> Log:
        """`TopicNotFound` if there is no such partition; nothing is created."""
        found = self.at_once(name, partition)
        if found is not None:
            return found
        topic = await self._broker.topic(await self._full(name, partition), create=False)
        if not isinstance(topic, Topic):
            raise TopicNotFound(f"{name} keeps nothing, so there is nothing to read by offset")
        made = Log(topic)
        await made.recall()
        found = self.at_once(name, partition)  # somebody else may have been quicker
        if found is None:
            found = self._known[name, partition] = made
        return found

    async def _full(self, name: str, partition: int) -> TopicName:
        base = TopicName.parse(name)
        count = await self._broker.catalog.partitions(base)
        if not 0 <= partition < max(count, 1):
            raise TopicNotFound(f"{name} has no partition {partition}")
        return base.partition(partition) if count else base


async def news_or_timeout(seconds: float, event: trio.Event) -> None:
    """Wait for an event, no longer than that."""
    with trio.move_on_after(seconds):
        await event.wait()
