"""Encoded rows of logs (`core/ledger/log/planning.py`), kept for as long as the logs do not change,
and which ledgers store each of them.

Theory. To make a row is mostly to wait for memory: it is made of some twenty objects that lie
apart, and those of 10,000 logs take 25 ms. So the rows of a topic's partitions are kept in pages.
Before a page is given, the rows that are marked are made anew, and each such log is asked to set
its mark at its next change (`ChangeNotice`). Nothing is looked up for a row without a mark. A log
that is one open ledger writes its row itself while it grows, as numbers, from when it is loaded:
so neither a first query nor one behind changes everywhere makes all rows at once.

A log that is being unloaded, or that does not exist, has no row that lasts: its mark stays set. So
does that of one that is being written, until what it writes is stored.

Invariants: a row that is not marked is the one that would be made now; one that is marked is given
only as it was made for that request. Each time they are given,
one of those is made anew and compared, in turn, because a change without a mark would hide messages
from queries: it is our mistake, and fails the request. A row and its notice are taken in one plain
call. All pages together take `bytes_max`; the one that was used longest ago leaves first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from magnetar.core.broker.row_making import NO_LOG, Rows, open_topics
from magnetar.core.kernel.names import TopicName, partition_name
from magnetar.core.ledger.log.change_notice import MARKED
from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic

Find = Callable[[Sequence[str]], Awaitable[Sequence[PersistentTopic | None]]]
"""Loads topics by their names; None is one that does not exist."""

PAGE_ROWS: Final = 250
"""Partitions of a page: to make all their rows anew takes a millisecond."""
KEPT_BYTES_MAX: Final = 8 * 1024 * 1024
"""Rows of 35,000 partitions that have one ledger each."""
PAGE_BYTES: Final = 1_100
"""What a page takes beside its rows."""
ROW_BYTES: Final = 146
"""What a row takes beside its text: the heads of two objects, their places in lists, its mark, its
numbers.
"""


class RowPage:
    """The rows of some partitions of a topic."""

    __slots__ = ("bytes", "first", "rows", "topic", "turn")

    def __init__(self, topic: str, first: int) -> None:
        self.topic, self.first = topic, first
        self.rows = Rows()
        self.bytes = PAGE_BYTES
        self.turn = -1
        """The row that was compared last."""

    def extend(self, number: int) -> int:
        """Have so many rows at least; returns by how many bytes it grows."""
        more = max(number - len(self.rows), 0) * (len(NO_LOG) + ROW_BYTES)
        if more:
            self.rows.extend(number)
            self.bytes += more
        return more

    def marked(self) -> list[int]:
        """The rows that are to be made anew."""
        marks = self.rows.marks
        if MARKED not in marks:
            return []
        return [at for at, mark in enumerate(marks) if mark == MARKED]

    def renew(self, numbers: Sequence[int], topics: Sequence[PersistentTopic | None]) -> None:
        """Make rows of the topics as they are now; None is one that does not exist."""
        self.bytes += self.rows.make(numbers, topics)

    def next_kept(self) -> int | None:
        """The row whose turn it is, if it is not to be made anew."""
        self.turn = (self.turn + 1) % len(self.rows)
        return None if self.rows.marks[self.turn] == MARKED else self.turn

    def name_of(self, number: int) -> str:
        return partition_name(self.topic, self.first + number)


class KeptRows:
    """See the module's docstring."""

    def __init__(self, topics: Mapping[str, Topic], bytes_max: int = KEPT_BYTES_MAX) -> None:
        """`topics` are those that are loaded."""
        self.bytes = 0
        self._topics = topics
        self._bytes_max = bytes_max
        self._pages: OrderedDict[tuple[str, int], RowPage] = OrderedDict()
        """By topic and first partition; the one that was used last is at the end."""

    def loaded(self, name: TopicName, topic: Topic) -> None:
        """Have a partition that was loaded write its row while it grows. Plain call."""
        if name.partition_index < 0 or topic.stored is None:
            return
        number = name.partition_index % PAGE_ROWS
        page = self._page(name.base.full, name.partition_index - number, number + 1)
        page.rows.follow(number, topic.stored.ledger, MARKED)

    async def encoded(self, topic: str, first: int, number: int, find: Find) -> bytes:
        """The rows of so many partitions, with commas between."""
        page = await self._current(topic, first, number, find)
        self._compare(page)
        return page.rows.text()

    async def stored_here(
        self, topic: str, first: int, number: int, asked: Sequence[tuple[int, int]], find: Find
    ) -> list[int]:
        """Those of the ledgers, as (partition, ledger), that store these partitions now."""
        page = await self._current(topic, first, number, find)
        return page.rows.stored_here(first, asked)

    async def _current(self, topic: str, first: int, number: int, find: Find) -> RowPage:
        """A page whose rows are as they are now."""
        page = self._page(topic, first, number)
        if len(page.rows) > number:  # the topic was made again, with fewer
            self._drop(topic, first)
            page = self._page(topic, first, number)
        made = set[int]()
        while marked := [each for each in page.marked() if each not in made]:
            topics = await self._topics_of([page.name_of(each) for each in marked], find)
            before = page.bytes
            page.renew(marked, topics)
            self._grown(page, page.bytes - before)
            made.update(marked)  # others may have got their marks while topics were looked for
        return page

    async def _topics_of(
        self, names: Sequence[str], find: Find
    ) -> Sequence[PersistentTopic | None]:
        """Most are loaded, and nothing waits; others are looked for."""
        found = open_topics(self._topics, names)
        others = [place for place, topic in enumerate(found) if topic is None]
        if others:
            late = await find([names[place] for place in others])
            for place, topic in zip(others, late, strict=True):
                found[place] = topic
        return found

    def _page(self, topic: str, first: int, number: int) -> RowPage:
        """The page with so many rows or more: who loads a topic does not know how many it has."""
        key = topic, first
        page = self._pages.pop(key, None)
        if page is None:
            page = RowPage(topic, first)
            self.bytes += page.bytes
        self._pages[key] = page
        self.bytes += page.extend(number)
        self._bound()
        return page

    def _grown(self, page: RowPage, more: int) -> None:
        """Count what a page has grown by."""
        if self._pages.get((page.topic, page.first)) is page:  # else dropped meanwhile
            self.bytes += more
            self._bound()

    def _bound(self) -> None:
        """Drop the pages that were used longest ago, or the last one, if there is no room."""
        while self.bytes > self._bytes_max:
            self._drop(*next(iter(self._pages)))

    def _drop(self, topic: str, first: int) -> None:
        page = self._pages.pop((topic, first), None)
        if page is not None:
            self.bytes -= page.bytes
            page.rows.drop()

    def _compare(self, page: RowPage) -> None:
        number = page.next_kept()
        if number is None or page.rows.dropped:
            return
        topic = self._topics.get(name := page.name_of(number))
        log = None if topic is None or topic.stored is None else topic.stored.ledger
        if log is None or encoded_row(log) != page.rows.text_of(number):
            for key in list(self._pages):
                self._drop(*key)
            raise AssertionError(f"{name} has changed without a notice")
