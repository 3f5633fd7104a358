"""Rows that are kept: the ones that would be made now, of all partitions, within a limit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from magnetar.core.broker import administration, kept_rows
from magnetar.core.broker.broker import Broker
from magnetar.core.broker.kept_rows import KeptRows, RowPage
from magnetar.core.broker.row_making import NO_LOG
from magnetar.core.kernel.errors import Fenced, StorageFailed, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.testing.bench import stored
from magnetar.core.testing.broker import running
from magnetar.core.topic.persistent_topic import PersistentTopic

BASE = "persistent://public/default/p"
P = TopicName.parse("p")


class Keeper:
    """A topic with a message in each of its partitions, and rows of them that are kept."""

    def __init__(self, broker: Broker, bytes_max: int = kept_rows.KEPT_BYTES_MAX) -> None:
        self.broker = broker
        self.kept = KeptRows(broker.topics, bytes_max)
        self.missing: list[int] = []

    @classmethod
    async def made(cls, broker: Broker, number: int = 3) -> Keeper:
        await administration.create_partitioned(broker, P, number)
        keeper = cls(broker)
        for each in range(number):
            await keeper.stores(each, b"a")
        return keeper

    async def topic(self, index: int) -> PersistentTopic:
        found = await self.broker.topic(P.partition(index))
        assert isinstance(found, PersistentTopic)
        return found

    async def stores(self, index: int, payload: bytes) -> None:
        await stored((await self.topic(index)).ledger, payload)

    async def gives(self, number: int = 3, first: int = 0) -> bytes:
        self.missing = []
        return await self.kept.encoded(BASE, first, number, self._found)

    async def _found(self, names: Sequence[str]) -> list[PersistentTopic | None]:
        return [await self._find(TopicName.parse(name)) for name in names]

    async def _find(self, name: TopicName) -> PersistentTopic | None:
        try:
            found = await self.broker.topic(name, create=False)
        except TopicNotFound:
            self.missing.append(name.partition_index)
            return None
        assert isinstance(found, PersistentTopic)
        return found

    async def rows(self, number: int = 3) -> bytes:
        """As they are now."""
        topics = [await self.topic(each) for each in range(number)]
        return b",".join(encoded_row(topic.ledger) for topic in topics)


@pytest.fixture
def renewed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that are made anew, as that happens."""
    found: list[int] = []
    renew = RowPage.renew

    def noting(page: RowPage, numbers: list[int], topics: object) -> None:
        found.extend(numbers)
        renew(page, numbers, topics)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(RowPage, "renew", noting)
    return found


async def test_only_what_has_changed_is_made_anew(renewed: list[int]) -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        assert await keeper.gives() == await keeper.rows()
        assert renewed == [0, 1, 2]
        assert await keeper.gives() == await keeper.rows()
        await (await keeper.topic(1)).ledger.roll()
        await keeper.stores(1, b"b")
        assert await keeper.gives() == await keeper.rows()
        assert renewed == [0, 1, 2, 1]


async def test_one_ledger_that_grows_writes_its_row_itself(renewed: list[int]) -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        for each in range(3):
            await keeper.stores(each, b"b")
        for _ in range(3):  # each row has its turn to be compared
            assert await keeper.gives() == await keeper.rows()
        assert renewed == [0, 1, 2]


async def test_it_does_from_when_it_is_loaded(renewed: list[int]) -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker, 4)
        keeper.kept = broker.kept_rows
        assert await keeper.gives(4) == await keeper.rows(4)
        assert not renewed
        ledgers = [(await keeper.topic(each)).ledger.chain.confirmed[0] for each in range(4)]
        asked = [*enumerate(ledgers), (0, ledgers[1])]
        assert await keeper.kept.stored_here(BASE, 0, 4, asked, keeper._found) == ledgers
        await broker.topic(TopicName.parse("other"))
        await broker.topic(TopicName.parse("non-persistent://public/default/n"))
        assert len(keeper.kept._pages) == 1, "neither has such a row"


async def test_a_log_lets_go_of_a_page_that_has_left() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker, 2)
        await keeper.gives(2)
        notice = (await keeper.topic(0)).ledger.notice
        marks, numbers = notice.marks, notice.numbers
        keeper.kept._drop(BASE, 0)
        assert (marks, numbers, keeper.kept.bytes) == (b"", b"", 0)
        await keeper.stores(0, b"b")
        assert notice.marks is None
        assert await keeper.gives(2) == await keeper.rows(2)


async def test_a_topic_that_is_made_again_with_fewer_partitions() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        await administration.delete_partitioned(broker, P, force=True)
        keeper = await Keeper.made(broker, 2)
        keeper.kept = broker.kept_rows
        assert await keeper.gives(2) == await keeper.rows(2)
        assert not keeper.missing


async def test_a_topic_that_is_loaded_again_is_looked_at_again() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        before = await keeper.gives()
        await broker.unload(P.partition(1))
        after = await keeper.gives()
        assert after == await keeper.rows() != before, "its ledger has ended"


async def test_a_topic_that_could_not_be_closed_is_kept_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its log would never tell of what the next one, of the same name, stores."""

    async def fails() -> None:
        raise StorageFailed("no")

    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        topic = await keeper.topic(1)
        monkeypatch.setattr(topic.deduplication, "close", fails)
        await broker.unload(P.partition(1))
        await keeper.stores(1, b"b")
        assert await keeper.topic(1) is not topic
        assert await keeper.gives() == await keeper.rows()


async def test_a_topic_of_another_owner_is_kept_no_longer() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        (await keeper.topic(1)).ledger.fence(Fenced("another owner"))
        assert await keeper.gives() == await keeper.rows()


async def test_partitions_that_are_gone_are_looked_for_each_time() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        await administration.delete_partitioned(broker, P, force=True)
        for _ in range(2):
            assert await keeper.gives() == b",".join([NO_LOG] * 3)
            assert keeper.missing == [0, 1, 2]


async def test_partitions_are_added(renewed: list[int]) -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        await administration.grow_partitioned(broker, P, 4)
        await keeper.topic(3)
        assert await keeper.gives(4) == await keeper.rows(4)
        assert renewed == [0, 1, 2, 3]
        before = keeper.kept.bytes
        await keeper.gives(4)
        assert (len(renewed), keeper.kept.bytes) == (4, before)


async def test_what_is_written_meanwhile_is_not_kept(renewed: list[int]) -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        topic, done = await keeper.topic(0), trio.Event()
        topic.publish([b"b"], None, lambda _result: done.set())
        topic.ledger.write()
        assert not topic.ledger.at_rest
        during = await keeper.gives(1)
        await done.wait()
        assert await keeper.gives(1) == await keeper.rows(1) != during
        assert renewed == [0, 0]


async def test_what_is_written_while_another_is_looked_for_is_made_too(renewed: list[int]) -> None:
    """Its numbers do not count any more, and its text has never been made."""
    async with running() as broker:
        keeper = await Keeper.made(broker, 2)
        keeper.kept = broker.kept_rows
        topic = await keeper.topic(0)
        await broker.unload(P.partition(1))
        done = trio.Event()

        async def find(names: Sequence[str]) -> list[PersistentTopic | None]:
            found = await keeper._found(names)
            if topic.ledger.at_rest:
                topic.publish([b"b"], None, lambda _result: done.set())
                topic.ledger.write()
            return found

        during = await keeper.kept.encoded(BASE, 0, 2, find)
        assert renewed == [1, 0]
        assert NO_LOG not in during
        await done.wait()
        assert await keeper.gives(2) == await keeper.rows(2)


async def test_a_change_without_a_notice_is_found() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()  # each row has its turn to be compared, and the second is next
        ledger = (await keeper.topic(1)).ledger
        ledger.transactions.aborted.append((7, 0, 0))  # type: ignore[arg-type]  # a mistake
        with pytest.raises(AssertionError, match="partition-1 has changed without a notice"):
            await keeper.gives()
        assert await keeper.gives() == await keeper.rows()


async def test_the_page_that_was_used_longest_ago_leaves(renewed: list[int]) -> None:
    two_pages = 2 * (kept_rows.PAGE_BYTES + 2 * (kept_rows.ROW_BYTES + 80))
    async with running() as broker:
        await Keeper.made(broker, 6)
        keeper = Keeper(broker, two_pages)
        for first in (0, 2, 0, 4):
            await keeper.gives(2, first)
            assert 0 < keeper.kept.bytes <= two_pages
        assert len(renewed) == 6, "the second time that the first page was given, it was kept"
        await keeper.gives(2, 0)
        assert len(renewed) == 6, "it was used after the second"
        await keeper.gives(2, 2)
        assert len(renewed) == 8


async def test_pages_are_counted_as_they_are() -> None:
    async with running() as broker:
        keeper = await Keeper.made(broker)
        await keeper.gives()
        text = len(await keeper.rows()) - 2  # without commas
        assert keeper.kept.bytes == kept_rows.PAGE_BYTES + 3 * kept_rows.ROW_BYTES + text
        keeper = Keeper(broker, 10)
        assert await keeper.gives() == await keeper.rows()
        assert keeper.kept.bytes == 0, "too large to be kept"


async def test_ledgers_are_those_of_the_partitions_now(renewed: list[int]) -> None:
    """A partition that is written to is looked at again; those that are gone have none."""
    async with running() as broker:
        keeper = await Keeper.made(broker)
        ledgers = [(await keeper.topic(each)).ledger.chain.confirmed[0] for each in range(3)]
        asked = [(each, ledger) for each, ledger in enumerate(ledgers)]
        crossed = [(0, ledgers[1]), (2, ledgers[1]), (2, 1 << 40)]

        async def found() -> list[int]:
            every = [*asked, *crossed]
            return await keeper.kept.stored_here(BASE, 0, 3, every, keeper._found)

        assert await found() == ledgers
        assert renewed == [0, 1, 2]
        await keeper.gives()
        assert renewed == [0, 1, 2], "plans are made of the same rows"
        await broker.unload(P.partition(1))
        await keeper.stores(1, b"b")
        assert await found() == ledgers, "of the ledger before"
        last = (await keeper.topic(1)).ledger.chain.confirmed[0]
        asked = [(1, last)]
        assert last not in ledgers
        assert await found() == [last]
        await administration.delete_partitioned(broker, P, force=True)
        assert await found() == []
