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
because entries of other brokers may have no index. The second pass reads only where the first has
noted something.

Both work on as many entries at once as were read, in a thread where the compiled functions do most
of it and let others run (`time_share.py`).

What a crash leaves, and two owners: `core/ledger/compacted/compacted_topic.py`. A write that names
the new ledger and fails may be stored all the same, so neither ledger is deleted then. If the
former ledger is forgotten while a compaction reads it, all is compacted anew from the log.

Invariants: writers and readers use the log without interruption; a compacted ledger has the last
value of each key up to its horizon, and of no key that was deleted up to there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

import trio

from magnetar.core.compaction.key_index import ORDER_BYTES, KeyIndex, new_key_index
from magnetar.core.compaction.latest import Latest
from magnetar.core.compaction.look import Look, Numbers
from magnetar.core.compaction.retention_rule import Outcomes, TransactionOutcome, outcome_of
from magnetar.core.compaction.rewrite import READ_ENTRIES
from magnetar.core.compaction.time_share import ON_THE_LOOP_MESSAGES, TimeShare
from magnetar.core.compaction.value_rule import FORMER, NumberedEntry, ValueRule
from magnetar.core.entry import header
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Conflict, Fenced
from magnetar.core.ledger.compacted.compacted_reader import CompactedReader
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.compacted.positions import PositionWriter
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.ledger_list_record import CompactedLedger
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.ports.ledger_store import LedgerWriter

KEYS_MAX: Final = 1_250_000
"""Keys of one round: at most 80 MB, 160 MB in Python alone."""
READ_BYTES: Final = 2 * 1024 * 1024
"""At once; the loop has a part in each reading, so few are quicker by a seventh than of 512 KB."""
WRITE_BYTES: Final = 128 * 1024
"""Written in one run; others' messages wait for its sync."""
ENTRIES_PER_TURN: Final = 10
"""So many are told apart on the loop in a tenth of a millisecond, after which other tasks run."""
KEYS_PER_REST: Final = 2_000
MESSAGES_PER_CALL: Final = 100 if new_key_index is KeyIndex else 100_000
"""Looked at in one call. With compiled functions, which let the loop run meanwhile, that is mostly
all that was read; without them, what takes half a millisecond.
"""
Result = TypeVar("Result")


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
        self._share = TimeShare(min(MESSAGES_PER_CALL, ON_THE_LOOP_MESSAGES))
        self.removed = 0

    async def run(self) -> None:
        """Compact everything that the log has now, but for what follows an open transaction."""
        end = self._ledger.transactions.stable_position(self._ledger.chain.confirmed)
        while True:
            former = self._compacted.current
            first = self._ledger.chain.after(START if former is None else former.horizon)
            if first > end:
                return
            # held from the beginning: it may be forgotten at any time
            reader = None if former is None else self._compacted.use(former)
            try:
                look = await self._look(first, end)
                new = await self._write(look, reader)
            finally:
                if reader is not None:
                    self._compacted.leave(reader)
            await self._replace(new, former)

    # -- looking ------------------------------------------------------------------------------

    async def _look(self, first: Position, end: Position) -> Look:
        look = Look(
            Latest(self._keys_max),
            Numbers(self._ledger, first),
            retains_keyless=self._retains_keyless,
        )
        position: Position | None = first
        while position is not None:
            entries, position = await self._read(position, end, look.numbers)
            if not await self._note(look, entries):
                break
        else:
            look.horizon = end
        known = len(look.latest)
        look.orders = await self._share.call(known * ORDER_BYTES, known, look.latest.orders)
        return look

    async def _note(self, look: Look, entries: Sequence[NumberedEntry]) -> bool:
        for part in parts_of(entries):
            if not await self._call(part, look.note):
                return False
        return True

    async def _call(
        self, part: Sequence[NumberedEntry], work: Callable[[Sequence[NumberedEntry]], Result]
    ) -> Result:
        size = sum(len(one.entry) for one in part)
        messages = sum(one.about.count for one in part)
        return await self._share.call(size, messages, work, part)

    async def _read(
        self, first: Position, end: Position, numbers: Numbers
    ) -> tuple[list[NumberedEntry], Position | None]:
        """Entries of the log from `first` up to `end`, and where to go on; None at the end."""
        chain = self._ledger.chain
        position = chain.normal(first)
        if position > end or not chain.has(position):
            return [], None
        self._check_open()
        part = await self._ledger.read(position, READ_ENTRIES, READ_BYTES)
        entries: list[NumberedEntry] = []
        for place, entry in enumerate(part.stored()):
            if place % ENTRIES_PER_TURN == 0:
                await self._share.turn()
            at = (part.ledger_id, part.first_entry + place)
            if at > end:
                return entries, None
            outcome = outcome_of(entry, self._outcomes)
            entries.append(NumberedEntry(numbers.of(at), at, entry, header.read(entry), outcome))
        return entries, (part.ledger_id, part.first_entry + len(part.payloads))

    def _check_open(self) -> None:
        if self._ledger.state is LogState.CLOSED:
            raise Fenced("the topic is being unloaded")

    # -- writing ------------------------------------------------------------------------------

    async def _write(self, look: Look, former: CompactedReader | None) -> CompactedLedger:
        ledger = self._ledger
        writer = await removal.create_beside(ledger)
        try:
            new = await self._written(writer, look, former)
            await writer.close()
            if new.ledger_id < 0:
                await removal.drop_beside(ledger, writer.ledger_id)
        except BaseException:
            with trio.CancelScope(shield=True):
                await removal.drop_beside(ledger, writer.ledger_id)
            raise
        return new

    async def _replace(self, new: CompactedLedger, former: CompactedLedger | None) -> None:
        with trio.CancelScope(shield=True):
            try:
                await self._compacted.replace(new, former)
            except Conflict:  # the former was forgotten meanwhile, with keys of which this was made
                self.removed = 0
                if new.ledger_id >= 0:
                    await removal.drop_beside(self._ledger, new.ledger_id)

    async def _written(
        self, writer: LedgerWriter, look: Look, former: CompactedReader | None
    ) -> CompactedLedger:
        rule = ValueRule(look.latest, look.orders, retains_keyless=self._retains_keyless)
        made = CompactedWriter(writer)
        if former is not None:
            async with aclosing(self._former(former)) as blocks:
                async for entries in blocks:
                    await self._write_rest(made, rule, entries)
        while look.latest.forget(KEYS_PER_REST):  # the storage needs memory for what is written
            await self._share.turn()
        seen = 0
        number = look.next_wanted(0)
        while number >= 0:
            position = look.numbers.position(number)
            entries, _ = await self._read(position, look.horizon, look.numbers)
            if not entries:
                break
            wanted = [one for one in entries if look.next_wanted(one.number) == one.number]
            number = look.next_wanted(entries[-1].number + 1)
            seen += sum(one.about.count for one in wanted)
            await self._write_rest(made, rule, wanted)
        await made.finish()
        self.removed += rule.removed + look.messages - seen
        entries_count = made.positions.count
        ledger_id = writer.ledger_id if entries_count else -1
        return CompactedLedger(
            ledger_id, entries_count, made.size, look.horizon, look.next_index, self._now_ms
        )

    async def _write_rest(
        self, made: CompactedWriter, rule: ValueRule, entries: Sequence[NumberedEntry]
    ) -> None:
        """Write what stays of entries."""
        for part in parts_of(entries):
            for one, left in zip(part, await self._call(part, rule.rests), strict=True):
                if left is not None:
                    await made.add(one.position, left)

    async def _former(self, reader: CompactedReader) -> AsyncGenerator[list[NumberedEntry], None]:
        """The entries of the former compacted ledger."""
        position, is_last = START, False
        while not is_last:
            self._check_open()
            block = await reader.block(position, READ_BYTES)
            entries: list[NumberedEntry] = []
            for at, entry in zip(block.positions, block.entries, strict=True):
                if len(entries) % ENTRIES_PER_TURN == 0:
                    await self._share.turn()
                about = header.read(entry)
                entries.append(NumberedEntry(FORMER, at, entry, about, TransactionOutcome.HOLDS))
            yield entries
            is_last = block.is_last
            if not is_last:
                ledger_id, entry_id = block.positions[-1]
                position = (ledger_id, entry_id + 1)


def parts_of(entries: Sequence[NumberedEntry]) -> Iterator[Sequence[NumberedEntry]]:
    """The entries in parts, each of which is looked at in one call."""
    begin = messages = 0
    for place, one in enumerate(entries):
        messages += one.about.count
        if messages >= MESSAGES_PER_CALL:
            yield entries[begin : place + 1]
            begin, messages = place + 1, 0
    if begin < len(entries):
        yield entries[begin:]


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
