"""What every LedgerStore must do. Implementations run `CHECKS` on a fresh store each."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from magnetar.core.kernel.errors import BrokerError, EntryNotFound, Fenced, LedgerNotFound
from magnetar.core.ports.ledger_store import LedgerStore, LedgerWriter, Quorums

Check = Callable[[LedgerStore], Awaitable[None]]


class Outcome:
    """A `done` that remembers, and can be waited for."""

    def __init__(self, expected: int = 1) -> None:
        self.results: list[BrokerError | None] = []
        self._expected = expected
        self._all = trio.Event()

    def __call__(self, error: BrokerError | None) -> None:
        self.results.append(error)
        assert len(self.results) <= self._expected, "told too often"
        if len(self.results) == self._expected:
            self._all.set()

    async def wait(self) -> list[BrokerError | None]:
        with trio.fail_after(20):
            await self._all.wait()
        return self.results


async def append(writer: LedgerWriter, *payloads: bytes) -> int:
    outcome = Outcome()
    first = writer.append(payloads, outcome)
    assert await outcome.wait() == [None]
    return first


async def there_is_room_to_begin_with(store: LedgerStore) -> None:
    assert store.writable()
    assert store.refusal().startswith("storage takes no writes: ")


async def ids_count_from_zero(store: LedgerStore) -> None:
    writer = await store.create({})
    assert writer.last_confirmed == -1
    assert writer.length == 0
    assert await append(writer, b"a", b"bc") == 0
    assert await append(writer, b"") == 2
    assert writer.last_confirmed == 2
    assert writer.length == 3


async def done_comes_later_once_and_in_order(store: LedgerStore) -> None:
    writer = await store.create({})
    order: list[int] = []
    outcome = Outcome()
    for i in range(100):
        writer.append([b"x"], lambda error, i=i: order.append(i))  # type: ignore[misc]
        assert not order, "told from within append"
    writer.append([b"last"], outcome)
    assert await outcome.wait() == [None]
    assert order == list(range(100))
    assert writer.last_confirmed == 100


async def what_was_appended_is_read(store: LedgerStore) -> None:
    writer = await store.create({})
    payloads = [bytes([i % 256]) * (i % 50) for i in range(500)]
    await append(writer, *payloads[:200])
    await append(writer, *payloads[200:])
    assert await writer.read(0, 499, 1 << 20) == payloads
    assert await writer.read(150, 250, 1 << 20) == payloads[150:251]
    assert await writer.read(499, 10_000, 1 << 20) == payloads[499:]


async def headers_stand_before_their_payloads(store: LedgerStore) -> None:
    writer = await store.create({})
    outcome = Outcome()
    writer.append([b"a", b"b"], outcome, [b"one:", b"two:"])
    assert await outcome.wait() == [None]
    assert await writer.read(0, 1, 100) == [b"one:a", b"two:b"]
    assert writer.length == 10


async def reads_stop_at_the_bytes_allowed_but_never_before_one(store: LedgerStore) -> None:
    writer = await store.create({})
    await append(writer, *[b"0123456789"] * 5)
    await append(writer, *[b"0123456789"] * 5)
    assert len(await writer.read(0, 9, 35)) == 3
    assert len(await writer.read(0, 9, 75)) == 7
    assert len(await writer.read(0, 9, 30)) == 3
    assert len(await writer.read(3, 9, 1)) == 1


async def nothing_beyond_the_confirmed_is_read(store: LedgerStore) -> None:
    writer = await store.create({})
    with pytest.raises(EntryNotFound):
        await writer.read(0, 0, 1)
    outcome = Outcome()
    writer.append([b"x"], outcome)
    with pytest.raises(EntryNotFound):
        await writer.read(1, 1, 1)
    await outcome.wait()


async def a_closed_ledger_says_where_it_ends(store: LedgerStore) -> None:
    writer = await store.create({"colour": b"blue"})
    await append(writer, b"abc", b"de")
    info = await writer.close()
    assert info == await store.info(writer.ledger_id)
    assert (info.closed, info.last_entry_id, info.length) == (True, 1, 5)
    assert info.properties == {"colour": b"blue"}
    outcome = Outcome()
    writer.append([b"late"], outcome)
    (error,) = await outcome.wait()
    assert isinstance(error, Fenced)
    reader = await store.open(writer.ledger_id, recover=False)
    assert reader.last_confirmed == 1
    assert await reader.read(0, 1, 100) == [b"abc", b"de"]


async def an_empty_ledger_can_be_closed(store: LedgerStore) -> None:
    writer = await store.create({})
    info = await writer.close()
    assert (info.closed, info.last_entry_id, info.length) == (True, -1, 0)
    reader = await store.open(writer.ledger_id, recover=True)
    assert reader.last_confirmed == -1


async def close_fails_what_is_in_flight(store: LedgerStore) -> None:
    writer = await store.create({})
    await append(writer, b"safe")
    outcome = Outcome()
    writer.append([b"in flight"], outcome)
    info = await writer.close()
    (error,) = await outcome.wait()
    assert error is None or isinstance(error, BrokerError)
    assert info.last_entry_id == (1 if error is None else 0)


async def an_open_ledger_is_known_as_open(store: LedgerStore) -> None:
    writer = await store.create({"a": b"\x00\xff"})
    info = await store.info(writer.ledger_id)
    assert not info.closed
    assert info.properties == {"a": b"\x00\xff"}
    reader = await store.open(writer.ledger_id, recover=False)
    await append(writer, b"x")
    assert reader.last_confirmed <= 0


async def recovery_takes_the_ledger_from_its_writer(store: LedgerStore) -> None:
    writer = await store.create({})
    await append(writer, b"one", b"two")
    reader = await store.open(writer.ledger_id, recover=True)
    assert reader.last_confirmed == 1
    assert await reader.read(0, 1, 100) == [b"one", b"two"]
    info = await store.info(writer.ledger_id)
    assert (info.closed, info.last_entry_id, info.length) == (True, 1, 6)
    outcome = Outcome(2)
    writer.append([b"zombie"], outcome)
    writer.append([b"zombie"], outcome)
    assert all(isinstance(error, Fenced) for error in await outcome.wait())
    again = await store.open(writer.ledger_id, recover=True)
    assert again.last_confirmed == 1


async def ids_are_not_used_twice(store: LedgerStore) -> None:
    ids = [(await store.create({})).ledger_id for _ in range(20)]
    assert len(set(ids)) == 20


async def sizes_may_be_asked_for(store: LedgerStore) -> None:
    one = Quorums(1, 1, 1)
    assert store.writable(one)
    assert store.refusal(one).startswith("storage takes no writes: ")
    writer = await store.create({"a": b"b"}, one)
    assert await append(writer, b"x") == 0
    assert (await store.info(writer.ledger_id)).properties == {"a": b"b"}


async def a_deleted_ledger_is_gone(store: LedgerStore) -> None:
    writer = await store.create({})
    await append(writer, b"x")
    await writer.close()
    await store.delete(writer.ledger_id)
    await store.delete(writer.ledger_id)
    with pytest.raises(LedgerNotFound):
        await store.open(writer.ledger_id, recover=False)
    with pytest.raises(LedgerNotFound):
        await store.info(writer.ledger_id)


CHECKS: list[Check] = [
    there_is_room_to_begin_with,
    ids_count_from_zero,
    done_comes_later_once_and_in_order,
    what_was_appended_is_read,
    headers_stand_before_their_payloads,
    reads_stop_at_the_bytes_allowed_but_never_before_one,
    nothing_beyond_the_confirmed_is_read,
    a_closed_ledger_says_where_it_ends,
    an_empty_ledger_can_be_closed,
    close_fails_what_is_in_flight,
    an_open_ledger_is_known_as_open,
    recovery_takes_the_ledger_from_its_writer,
    ids_are_not_used_twice,
    sizes_may_be_asked_for,
    a_deleted_ledger_is_gone,
]
