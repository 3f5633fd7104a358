"""The compaction of one log for Pulsar's clients: writes the last value of each key beside it.

    look     reads what is new in the log, and notes the last message of each key, up to a number of
             keys
    write    reads the former compacted ledger and what is new, and writes what stays to a new one,
             which then takes the former's place in one write

If the number of keys was reached, both are repeated for the rest, so that memory depends on the
keys of one round only, not on all that the topic ever had. Pulsar's compactor has the same two
passes (`AbstractTwoPhaseCompactor.java` of 4.2), with all keys in memory. What retention has
deleted from the log stays in the compacted ledger: it is the former one's.

Messages are ordered by the number of their entry since the former horizon, and their place in it,
because entries of other brokers may have no index. In the second pass only entries are unpacked of
which the first has noted something.

What a crash leaves, and two owners: `core/ledger/compacted/compacted_topic.py`. A write that names
the new ledger and fails may be stored all the same, so neither ledger is deleted then.

Invariants: writers and readers use the log without interruption; a compacted ledger has the last
value of each key up to its horizon, and of no key that was deleted up to there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final

import trio

from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.retention_rule import Outcomes, TransactionOutcome, outcome_of
from magnetar.core.compaction.rewrite import READ_BYTES, READ_ENTRIES, is_long
from magnetar.core.compaction.survivors import Survivors
from magnetar.core.compaction.value_rule import (
    FORMER,
    PLACE_BITS,
    PLACES,
    ValueRule,
    keyed,
    order_of,
)
from magnetar.core.entry import header
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.compacted.positions import PositionWriter
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.ledger_list_record import CompactedLedger
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.ports.ledger_store import LedgerWriter

KEYS_MAX: Final = 1_000_000
"""Keys of one round: at most about 130 MB."""
WRITE_BYTES: Final = 128 * 1024
"""Written in one run; others' messages wait for its sync."""
KEYS_PER_REST: Final = 2_000
"""Looked at in half a millisecond, after which other tasks run."""
MESSAGES_PER_REST: Final = 100
ENTRIES_MAX: Final = 100_000_000
"""Entries of one round: one bit each."""


class Numbers:
    """The numbers of entries: of ledgers that the log has when a round begins."""

    def __init__(self, ledger: ManagedLedger, after: Position) -> None:
        self._ids: list[int] = []
        self._bases: list[int] = []
        total = 0
        for segment in ledger.chain.segments:
            if segment.ledger_id >= after[0]:
                self._ids.append(segment.ledger_id)
                self._bases.append(total)
                total += ledger.chain.last_entry_of(segment) + 1
        self.total = total

    def of(self, position: Position) -> int:
        at = bisect_right(self._ids, position[0]) - 1
        return self._bases[at] + position[1]


class Look:
    """What the first pass has found."""

    def __init__(self, latest: Latest, numbers: Numbers) -> None:
        self.latest = latest
        self.survivors = Survivors(numbers.total << PLACE_BITS)
        self.numbers = numbers
        self.horizon: Position = START
        """The last entry that was looked at."""
        self.next_index = 0
        """The index after it."""
        self._wanted = bytearray(min(numbers.total, ENTRIES_MAX) // 8 + 1)

    def want(self, number: int) -> None:
        """Something of that entry may stay."""
        self._wanted[number >> 3] |= 1 << (number & 7)

    def wants(self, number: int) -> bool:
        return bool(self._wanted[number >> 3] >> (number & 7) & 1)


class LastValues:
    """See the module's docstring."""

    def __init__(
        self,
        ledger: ManagedLedger,
        compacted: CompactedTopic,
        outcomes: Outcomes,
        *,
        retains_keyless: bool,
        now_ms: int,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._ledger = ledger
        self._compacted = compacted
        self._outcomes = outcomes
        self._retains_keyless = retains_keyless
        self._now_ms = now_ms
        self._keys_max = keys_max
        self._since_rest = 0
        self.removed = 0

    async def run(self) -> None:
        """Compact everything that the log has now, but for what follows an open transaction."""
        end = self._end()
        while True:
            after = self._compacted.horizon
            first = self._ledger.chain.after(after)
            if first > end:
                return
            look = await self._look(first, end)
            await self._write(first, look)

    def _end(self) -> Position:
        """The last entry to compact."""
        confirmed, undecided = self._ledger.chain.confirmed, self._ledger.transactions.oldest
        if undecided is None:
            return confirmed
        ledger_id, entry_id = undecided.position
        return min(confirmed, (ledger_id, entry_id - 1))

    # -- looking ------------------------------------------------------------------------------

    async def _look(self, first: Position, end: Position) -> Look:
        numbers = Numbers(self._ledger, first)
        look = Look(Latest(self._keys_max), numbers)
        latest = look.latest
        latest.end = numbers.total << PLACE_BITS
        async with aclosing(self._entries(first, end)) as entries:
            async for position, entry in entries:
                number = numbers.of(position)
                if latest.full or number >= ENTRIES_MAX:
                    break
                await self._note(look, number, entry)
                look.horizon = position
            else:
                look.horizon = end
        orders = iter(latest.orders())
        while part := list(islice(orders, KEYS_PER_REST)):
            for order in part:
                look.want(order >> PLACE_BITS)
                look.survivors.add(order)
            await trio.lowlevel.checkpoint()
        return look

    async def _note(self, look: Look, number: int, entry: bytes) -> None:
        about = header.read(entry)
        look.next_index = about.index + 1
        await self._rest(about.count)
        if outcome_of(entry, self._outcomes) is not TransactionOutcome.HOLDS:
            return
        if is_long(entry, about.count):
            found = await trio.to_thread.run_sync(keyed, entry)
        else:
            found = keyed(entry)
        if found is None or not found.is_decided:
            look.want(number)
            return
        items = found.items
        if not items or items[-1].place < PLACES:
            look.latest.note_items(items, number << PLACE_BITS)
        else:
            for item in items:
                if item.key is not None:
                    look.latest.note(item.key, order_of(number, item.place))
        if self._retains_keyless and any(item.key is None for item in items):
            look.want(number)

    async def _entries(
        self, first: Position, end: Position
    ) -> AsyncGenerator[tuple[Position, bytes], None]:
        """The stored entries of the log from `first` up to `end`, with their positions."""
        ledger, chain = self._ledger, self._ledger.chain
        position = chain.normal(first)
        while position <= end and chain.has(position):
            self._check_open()
            part = await ledger.read(position, READ_ENTRIES, READ_BYTES)
            for place, entry in enumerate(part.stored()):
                at = (part.ledger_id, part.first_entry + place)
                if at > end:
                    return
                yield at, entry
            await trio.lowlevel.checkpoint()
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    def _check_open(self) -> None:
        if self._ledger.state is LogState.CLOSED:
            raise Fenced("the topic is being unloaded")

    async def _rest(self, messages: int) -> None:
        self._since_rest += messages
        if self._since_rest >= MESSAGES_PER_REST:
            self._since_rest = 0
            await trio.lowlevel.checkpoint()

    # -- writing ------------------------------------------------------------------------------

    async def _write(self, first: Position, look: Look) -> None:
        ledger = self._ledger
        writer = await removal.create_beside(ledger)
        try:
            new = await self._written(writer, first, look)
            await writer.close()
            if new.ledger_id < 0:
                await removal.drop_beside(ledger, writer.ledger_id)
        except BaseException:
            with trio.CancelScope(shield=True):
                await removal.drop_beside(ledger, writer.ledger_id)
            raise
        with trio.CancelScope(shield=True):
            await self._compacted.replace(new)

    async def _written(self, writer: LedgerWriter, first: Position, look: Look) -> CompactedLedger:
        rule = ValueRule(look.latest, look.survivors, retains_keyless=self._retains_keyless)
        made = CompactedWriter(writer)
        async with aclosing(self._former()) as former:
            async for position, entry in former:
                left = await self._left_of(rule, entry, FORMER)
                if left is not None:
                    await made.add(position, left)
        while look.latest.forget(KEYS_PER_REST):  # the storage needs memory for what is written
            await trio.lowlevel.checkpoint()
        unwanted = 0
        async with aclosing(self._entries(first, look.horizon)) as entries:
            async for position, entry in entries:
                number = look.numbers.of(position)
                if not look.wants(number):
                    unwanted += header.read(entry).count
                    continue
                left = await self._left_of(rule, entry, number)
                if left is not None:
                    await made.add(position, left)
        await made.finish()
        self.removed += rule.removed + unwanted
        entries_count = made.positions.count
        ledger_id = writer.ledger_id if entries_count else -1
        return CompactedLedger(
            ledger_id, entries_count, made.size, look.horizon, look.next_index, self._now_ms
        )

    async def _former(self) -> AsyncGenerator[tuple[Position, bytes], None]:
        """The entries of the former compacted ledger."""
        current = self._compacted.current
        if current is None:
            return
        reader = self._compacted.use(current)
        try:
            position, is_last = START, False
            while not is_last:
                self._check_open()
                block = await reader.block(position, READ_BYTES)
                for one in zip(block.positions, block.entries, strict=True):
                    yield one
                await trio.lowlevel.checkpoint()
                is_last = block.is_last
                if not is_last:
                    ledger_id, entry_id = block.positions[-1]
                    position = (ledger_id, entry_id + 1)
        finally:
            self._compacted.leave(reader)

    async def _left_of(self, rule: ValueRule, entry: bytes, number: int) -> bytes | None:
        count = header.read(entry).count
        await self._rest(count)
        outcome = TransactionOutcome.HOLDS
        if number != FORMER:
            outcome = outcome_of(entry, self._outcomes)
        if not is_long(entry, count):
            return rule.left_of(entry, number, outcome)
        return await trio.to_thread.run_sync(rule.left_of, entry, number, outcome)


class CompactedWriter:
    """Entries on their way into the new ledger: written in runs, one at a time."""

    def __init__(self, writer: LedgerWriter) -> None:
        self.positions = PositionWriter()
        self.size = 0
        self._writer = writer
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    async def add(self, position: Position, entry: bytes) -> None:
        self.positions.add(position)
        self._waiting.append(entry)
        self._waiting_bytes += len(entry)
        if self._waiting_bytes >= WRITE_BYTES:
            await self._store(self._waiting)

    async def finish(self) -> None:
        """Write the rest, and the positions."""
        if self.positions.count:
            rest = self._waiting
            await self._store([*rest, *self.positions.finished()])

    async def _store(self, entries: Sequence[bytes]) -> None:
        self.size += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0
        stored = Completion[None]()
        self._writer.append(entries, stored.done)
        await stored.result()
