"""What is told of a log: where it begins and ends, what is decided, and in which ledgers it is."""

import msgspec

from magnetar.core.ledger.log.planning import encoded_row, encoded_rows, ledgers_of, plan_of, row_of
from magnetar.core.ledger.log.remaining_entries import RemainingEntries
from magnetar.core.ledger.read.reading_plan import Place, PlanRow
from magnetar.core.ledger.read.transaction_index import Aborted, TransactionIndex
from magnetar.core.testing.bench import bench, stored


async def test_an_empty_log() -> None:
    async with bench() as made:
        plan = plan_of(await made.ledger())
    assert plan.first == plan.stable == plan.end == Place(-1, 0, 0)
    assert (plan.ledgers, plan.aborted) == ([], [])


async def test_a_log_with_messages() -> None:
    async with bench() as made:
        ledger = await made.ledger()
        await stored(ledger, b"a", b"bc")
        plan = plan_of(ledger)
        (only,) = plan.ledgers
        assert (plan.first, plan.end) == (Place(only.id, 0, 0), Place(only.id, 2, 2))
        assert (only.first_index, only.entries, only.open) == (0, 2, True)
        assert only.bytes == ledger.chain.segments[0].size > 3, "with the headers of entries"
        assert only.kept == ""
        await ledger.close()
        (only,) = plan_of(ledger).ledgers
        assert not only.open
        assert only.closed_ms


async def test_nothing_is_stable_behind_an_open_transaction() -> None:
    async with bench() as made:
        ledger = await made.ledger()
        await stored(ledger, b"a", b"b", b"c")
        at = ledger.chain.confirmed
        ledger.transactions.wrote(7, 1, (at[0], 1), 0)
        plan = plan_of(ledger)
        assert (plan.stable, plan.end) == (Place(at[0], 1, 1), Place(at[0], 3, 3))
        ledger.transactions.ended(7, 3, committed=False)
        plan = plan_of(ledger)
        assert plan.stable == plan.end
        assert plan.aborted == [(7, 1, 3)]


async def test_where_the_remaining_entries_of_a_compacted_ledger_are() -> None:
    async with bench() as made:
        ledger = await made.ledger()
        await stored(ledger, b"a", b"b", b"c")
        (only,) = ledger.chain.segments
        only.remaining = RemainingEntries(99, 5, [1, 2])
        assert plan_of(ledger).ledgers[0].kept == "99 5 2"


async def test_a_row_says_the_same() -> None:
    async with bench() as made:
        ledger = await made.ledger()
        await stored(ledger, b"a", b"b", b"c")
        ledger.transactions.wrote(7, 1, (ledger.chain.confirmed[0], 1), 0)
        ledger.transactions.ended(7, 2, committed=False)
        ledger.transactions.wrote(8, 2, (ledger.chain.confirmed[0], 2), 0)
        (only,) = ledger.chain.segments
        only.remaining = RemainingEntries(99, 5, [1, 2])
        row = msgspec.json.decode(msgspec.json.encode(row_of(ledger)), type=PlanRow)
        plan = msgspec.convert(msgspec.to_builtins(plan_of(ledger)), type(plan_of(ledger)))
        for name in PlanRow.__struct_fields__:
            if name != "ledgers":
                assert getattr(row, name) == getattr(plan, name)
        assert [msgspec.structs.astuple(one) for one in row.ledgers] == [
            msgspec.structs.astuple(one) for one in plan.ledgers
        ]


async def test_keys_of_two_halves_are_told_and_found_again() -> None:
    """Of a transaction that was aborted: readers look entries up by its key."""
    async with bench() as made:
        ledger = await made.ledger()
        await stored(ledger, b"a", b"b")
        at = ledger.chain.confirmed
        ledger.transactions.wrote((3, 1 << 62), 0, (at[0], 0), 0)
        ledger.transactions.ended((3, 1 << 62), 1, committed=False)
        told = msgspec.json.decode(msgspec.json.encode(row_of(ledger)), type=PlanRow)
    index = TransactionIndex()
    index.aborted = [Aborted(*one) for one in told.aborted]
    assert index.hides((3, 1 << 62), 0)
    assert not index.hides((3, 1), 0)


async def test_many_logs_are_told_as_one_is() -> None:
    async with bench() as made:
        plain, other = await made.ledger(), await made.ledger("u")
        assert ledgers_of(plain) == ()
        await stored(plain, b"a")
        await stored(other, b"a", b"b")
        other.transactions.wrote(7, 1, (other.chain.confirmed[0], 1), 0)
        logs = [other, plain, other]
        assert encoded_rows(logs) == [encoded_row(log) for log in logs]
        assert encoded_rows([]) == []
        assert ledgers_of(plain) == (plain.chain.confirmed[0],)
        (only,) = other.chain.segments
        only.remaining = RemainingEntries(99, 5, [1])
        assert ledgers_of(other) == (only.ledger_id, 99)
