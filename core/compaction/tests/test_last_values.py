"""Compaction beside a log against a dict of last values: any history, at any time, in any rounds;
a failure at each write; two owners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.compaction.last_values import LastValues
from magnetar.core.compaction.retention_rule import TransactionOutcome
from magnetar.core.compaction.tests.histories import appended, compacted, unknown, wrapped
from magnetar.core.compaction.tests.histories import batch as kafka_batch
from magnetar.core.compaction.tests.histories import entries as log_entries
from magnetar.core.compaction.tests.last_values import Value, compacted_beside, values, values_of
from magnetar.core.kernel.errors import BrokerError, StorageFailed
from magnetar.core.ledger.compacted import positions
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import NO_AGE, Bench, bench, settled
from magnetar.core.testing.entries import batch, entry

KEYS = st.sampled_from([None, b"a", b"b", b"c", b"d" * 40])
VALUES = st.one_of(st.none(), st.binary(max_size=3))
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("one"), KEYS, st.binary(max_size=3)),
        st.tuples(st.just("batch"), PAIRS),
        st.tuples(st.just("kafka"), PAIRS),
        *(st.just((word,)) for word in ("beside", "in place", "trim", "open")),
    ),
    max_size=30,
)
FOR_EVER = 10**15


def expected(every: list[Value], *, retains_keyless: bool = False) -> list[Value]:
    """The last values, in order."""
    last = {one.key: one for one in every}
    return [
        one
        for one in every
        if (one.key is None and retains_keyless)
        or (one.key is not None and last[one.key] is one and one.value)
    ]


@given(STEPS, st.sampled_from([1, 2, 1000]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_history(steps: list, keys_max: int, keyless: bool) -> None:  # type: ignore[type-arg]
    trio.run(_any_history, steps, keys_max, keyless)


async def _any_history(steps: list, keys_max: int, keyless: bool) -> None:  # type: ignore[type-arg]
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        every: list[Value] = []
        wanted: list[Value] = []
        for step in [*steps, ("open",), ("beside",)]:
            topic = CompactedTopic(made.storage, ledger)
            if step[0] == "open":
                await ledger.close()
                ledger = await made.ledger()
                topic = CompactedTopic(made.storage, ledger)
            elif step[0] == "beside":
                await compacted_beside(made, ledger, keys_max=keys_max, retains_keyless=keyless)
                wanted = expected(every, retains_keyless=keyless)
            elif step[0] == "in place":
                await compacted(made, ledger, retention_ms=FOR_EVER)
            elif step[0] == "trim":
                await _trim(ledger, topic)
            else:
                every += await _publish(ledger, step)
            assert await values(topic) == wanted
        named = {one.stored_in for one in ledger.chain.segments}
        current = topic.current
        named |= {current.ledger_id} if current is not None else set()
        assert set(made.ledgers.ledgers) == named - {-1}, "nothing is left over"


async def _publish(ledger: ManagedLedger, step: tuple) -> list[Value]:  # type: ignore[type-arg]
    if step[0] == "one":
        sent, count = entry(step[2], key=step[1]), 1
    elif step[0] == "batch":
        sent, count = batch(step[1]), len(step[1])
    else:
        sent, count = wrapped(kafka_batch(step[1])), len(step[1])
    await appended(ledger, sent, count=count)
    position, stored = (await log_entries(ledger))[-1]
    return values_of(position, stored)


async def _trim(ledger: ManagedLedger, topic: CompactedTopic) -> None:
    """Delete every ledger that has been compacted to its end."""
    ended = [one for one in ledger.chain.segments if one.closed_ms]
    done = [one.ledger_id for one in ended if (one.ledger_id, one.entries - 1) <= topic.horizon]
    await ledger.trim(done)


async def test_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "POSITIONS_PER_CHUNK", 4)
    monkeypatch.setattr("magnetar.core.ledger.compacted.compacted_reader.POSITIONS_PER_CHUNK", 4)
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        every: list[Value] = []
        for number in range(60):
            every += await _publish(ledger, ("one", b"%d" % (number % 23), b"%d" % number))
        assert await compacted_beside(made, ledger) == 37
        topic = CompactedTopic(made.storage, ledger)
        assert await values(topic) == expected(every)
        assert topic.current is not None
        reader = topic.use(topic.current)
        for at in [every[number].position for number in range(60)]:
            block = await reader.block(at, 1)
            assert block.positions[0] == min(
                one.position for one in expected(every) if one.position >= at
            )


async def test_what_cannot_be_told_apart_stays_and_its_tombstones_too() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        await appended(ledger, entry(b"1", key=b"a", chunk=(b"u", 0, 2)))
        await appended(ledger, entry(b"2", key=b"a", chunk=(b"u", 1, 2)))
        await appended(ledger, entry(b"x", key=b"b"), entry(b"", key=b"a"), entry(b"", key=b"b"))
        assert await compacted_beside(made, ledger) == 2
        topic = CompactedTopic(made.storage, ledger)
        assert topic.current is not None
        assert topic.current.entries == 3, "two chunks, and the end of their key"


async def test_transactions() -> None:
    """Parts of aborted ones are left out; nothing behind an open one is compacted."""
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        sent = [
            wrapped(kafka_batch([(b"a", value)], producer_id=7, attributes=16))
            for value in (b"1", b"2")
        ]
        await appended(ledger, wrapped(kafka_batch([(b"a", b"0")])), sent[0])

        def outcome(_key: object, index: int) -> TransactionOutcome:
            return TransactionOutcome.VOID if index == 1 else TransactionOutcome.HOLDS

        assert await compacted_beside(made, ledger, outcomes=outcome) == 1
        topic = CompactedTopic(made.storage, ledger)
        assert [one.value for one in await values(topic)] == [b"0"]
        await appended(ledger, sent[1])
        await compacted_beside(made, ledger, outcomes=outcome)
        assert [one.value for one in await values(topic)] == [b"2"]


class Failing:
    """The stores fail from one call on, as for a process that is gone."""

    def __init__(self, made: Bench, fails_at: int) -> None:
        self.made = made
        self.calls = 0
        self.fails_at = fails_at

    def patched(self, store: object, name: str) -> Callable[..., Any]:
        real = getattr(store, name)

        async def instead(*given: Any) -> Any:
            self.calls += 1
            if self.calls >= self.fails_at:
                raise StorageFailed(f"no {name}")
            return await real(*given)

        return instead


async def test_a_failure_at_each_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is the former compacted ledger or the new one, and the next owner deletes the rest."""
    left_over = []
    for fails_at in range(1, 30):
        async with bench(NO_AGE) as made:
            ledger = await made.ledger()
            every = await _filled(ledger, 10)
            await compacted_beside(made, ledger)
            former = expected(every)
            every += await _filled(ledger, 20)
            failing = Failing(made, fails_at)
            failed = False
            with monkeypatch.context() as patched:
                for store, name in (
                    (made.metadata, "put"),
                    (made.ledgers, "create"),
                    (made.ledgers, "delete"),
                ):
                    patched.setattr(store, name, failing.patched(store, name))
                try:
                    await compacted_beside(made, ledger)
                except BrokerError:
                    failed = True
            again = await made.ledger()
            topic = CompactedTopic(made.storage, again)
            assert await values(topic) == (former if failed else expected(every))
            await settled()
            assert topic.current is not None
            named = {one.stored_in for one in again.chain.segments} | {topic.current.ledger_id}
            left_over.append(len(made.ledgers.ledgers.keys() - named))
            if failing.calls < fails_at:
                break
    assert 3 < fails_at < 29, "all writes were interrupted"
    assert left_over == [0, 1, *[0] * (fails_at - 2)], "only what is created and not noted yet"


async def test_it_is_forgotten_while_a_compaction_runs() -> None:
    """At each moment: afterwards there are the last values of the log, or none at all."""
    complete = moment = 0
    over = False
    while not over:
        async with bench(NO_AGE) as made:
            ledger = await made.ledger()
            every = await _filled(ledger, 23)
            await compacted_beside(made, ledger)
            topic = CompactedTopic(made.storage, ledger)
            await _trim(ledger, topic)
            every += await _publish(ledger, ("one", b"new", b"1"))
            in_log = expected([one for one in every if one.position >= ledger.chain.first])
            assert 1 < len(in_log) < len(expected(every))
            work = LastValues(
                ledger, topic, unknown, retains_keyless=False, now_ms=made.clock.wall_ms()
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work.run)
                for _ in range(moment):
                    await trio.lowlevel.checkpoint()
                over = topic.current is not None and topic.horizon == ledger.chain.confirmed
                await topic.forget()
            found = await values(topic)
            assert found in ([], in_log)
            complete += found != []
            await settled()
            named = {one.stored_in for one in ledger.chain.segments}
            named |= {topic.current.ledger_id} if topic.current is not None else set()
            assert set(made.ledgers.ledgers) == named, "nothing is left over"
            moment += 1
    assert complete > 3, "it was forgotten in the middle"
    assert moment < 1_000


async def _filled(ledger: ManagedLedger, count: int) -> list[Value]:
    every = []
    for number in range(count):
        every += await _publish(ledger, ("one", b"%d" % (number % 7), b"%d" % (count + number)))
    return every


async def test_the_topic_takes_it_along_when_it_is_deleted() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        await _filled(ledger, 10)
        await compacted_beside(made, ledger)
        await ledger.delete()
        assert not made.ledgers.ledgers


async def test_nothing_new_is_no_work() -> None:
    async with bench(NO_AGE) as made:
        ledger = await made.ledger()
        assert await compacted_beside(made, ledger) == 0
        topic = CompactedTopic(made.storage, ledger)
        assert topic.current is None
        await _filled(ledger, 10)
        await compacted_beside(made, ledger)
        before = topic.current
        assert await compacted_beside(made, ledger) == 0
        assert topic.current is before or topic.current == before
