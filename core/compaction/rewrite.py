"""The compaction of one log: reads it, and writes it again ledger by ledger.

    look      reads the new ledgers and notes the last index of each key, up to a limit of keys
    rewrite   reads all ledgers up to there; the rest of a few neighbours is written to one ledger,
              which then takes their place in the list of ledgers, in one write

If the limit was reached, both passes are repeated for the rest. Kafka's `Cleaner` has the same two
passes (`buildOffsetMap`, `cleanSegments`).

What a crash leaves: while the new ledger is written, the list notes it as to be deleted, and the
next owner of the log deletes it. The write that puts it into the list notes the replaced ledgers as
to be deleted instead. Groups that were rewritten before the crash are valid: each removed message
has a later value in a later ledger.

Two owners: both writes of the list are conditional, so a broker that has lost the log replaces
nothing (`core/ledger/log/ledger_list.py`).

Invariant: the rest of an entry keeps its position, index and header; at a known position a reader
finds the same entry, its rest, or the next one.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final

import trio
from msgspec.structs import replace

from magnetar.core.compaction.latest import KEYS_MAX, Latest
from magnetar.core.compaction.plan import Plan, groups
from magnetar.core.compaction.retention_rule import (
    Outcomes,
    RetentionRule,
    Terms,
    TransactionOutcome,
    outcome_of,
    unpacked,
)
from magnetar.core.compaction.time_share import TimeShare
from magnetar.core.entry import header
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Fenced
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ledger.log.ledger_list_record import MIXED
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.ledger.log.remaining_entries import RemainingEntries, encoded
from magnetar.core.ports.ledger_store import LedgerWriter

log = logging.getLogger(__name__)

READ_ENTRIES: Final = 500
READ_BYTES: Final = 512 * 1024
"""Read in one step, and written in one run."""
MESSAGES_PER_REST: Final = 200
"""Processed in about a millisecond, after which other tasks run."""
IDS_ON_THE_LOOP: Final = 20_000
"""More ids are compressed in a thread."""


class Rewrite:
    """See the module's docstring."""

    def __init__(
        self,
        ledger: ManagedLedger,
        plan: Plan,
        terms: Terms,
        outcomes: Outcomes,
        gone: Callable[[], None],
        keys_max: int = KEYS_MAX,
    ) -> None:
        """`gone` is called after each replacement of ledgers."""
        self._ledger = ledger
        self._plan = plan
        self._terms = terms
        self._outcomes = outcomes
        self._gone = gone
        self._keys_max = keys_max
        self._share = TimeShare(MESSAGES_PER_REST)
        self.bytes_before = self.bytes_after = 0

    async def run(self) -> None:
        """Compact everything in the plan."""
        clean_to = self._terms.clean_to
        while clean_to < self._plan.end:
            latest = await self._find_latest(clean_to)
            rule = RetentionRule(latest, self._terms._replace(clean_to=clean_to))
            ripe = [one for one in self._plan.segments if one.first_index < latest.end]
            for group in groups(ripe):
                # the log is clean up to `latest.end` only when the last group is replaced
                done = clean_to if group[-1] is not ripe[-1] else latest.end
                await self._rewrite(group, rule, done)
            clean_to = latest.end

    # -- looking ------------------------------------------------------------------------------

    async def _find_latest(self, clean_to: int) -> Latest:
        latest = Latest(self._keys_max)
        for segment in self._plan.dirty:
            async with aclosing(self._entries(segment)) as entries:
                async for _, entry in entries:
                    about = header.read(entry)
                    if about.index < clean_to:
                        continue
                    if latest.full:
                        latest.end = about.first_index
                        return latest
                    await self._note(latest, entry, about)
        latest.end = self._plan.end
        return latest

    async def _note(self, latest: Latest, entry: bytes, about: header.EntryHeader) -> None:
        if outcome_of(entry, self._outcomes) is not TransactionOutcome.HOLDS:
            return
        found = await self._share.call(len(entry), about.count, unpacked, entry)
        if found is None or not found.is_decided:
            return
        for item in found.items:
            if item.key is not None:
                latest.note(item.key, about.first_index + item.place)
        if found.producer is not None:
            latest.note_producer(found.producer, about.index)

    async def _entries(self, segment: Segment) -> AsyncGenerator[tuple[int, bytes], None]:
        """The stored entries of a ledger, with their ids."""
        ledger, chain = self._ledger, self._ledger.chain
        position: Position = chain.normal((segment.ledger_id, 0))
        while position[0] == segment.ledger_id and chain.has(position):
            if ledger.state is LogState.CLOSED:
                raise Fenced("the topic is being unloaded")
            part = await ledger.read(position, READ_ENTRIES, READ_BYTES)
            for place, entry in enumerate(part.stored()):
                yield part.first_entry + place, entry
            await trio.lowlevel.checkpoint()
            position = chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))

    # -- rewriting ----------------------------------------------------------------------------

    async def _rewrite(self, group: Sequence[Segment], rule: RetentionRule, clean_to: int) -> None:
        ledger = self._ledger
        # a reader of a removed entry gets one of another form in its place (`core/entry/empty.py`)
        if not ledger.mixed:
            await ledger.set_property(MIXED, "")
        writer = await removal.create_beside(ledger)
        try:
            instead = {one.ledger_id: await self._copied(one, rule, writer) for one in group}
            await writer.close()
        except BaseException:
            with trio.CancelScope(shield=True):
                await removal.drop_beside(ledger, writer.ledger_id)
            raise
        with trio.CancelScope(shield=True):  # a cancelled write would leave memory behind the list
            # A write that fails may be stored all the same, so neither the new nor the replaced
            # ledgers are deleted here: the next owner of the log sees which are to be.
            await removal.replace(ledger, instead, clean_to, self._gone)

    async def _copied(
        self, segment: Segment, rule: RetentionRule, writer: LedgerWriter
    ) -> Segment | None:
        """Write the rest of a ledger to `writer`; returns its segment, None if nothing is left."""
        first = writer.last_confirmed + 1
        ids: list[int] = []
        size = 0
        waiting: list[bytes] = []
        waiting_bytes = 0
        async with aclosing(self._entries(segment)) as entries:
            async for entry_id, entry in entries:
                left = await self._left_of(entry, rule)
                if left is None:
                    continue
                ids.append(entry_id)
                waiting.append(left)
                waiting_bytes += len(left)
                if waiting_bytes >= READ_BYTES:
                    size += waiting_bytes
                    await _stored(writer, waiting)
                    waiting, waiting_bytes = [], 0
        size += waiting_bytes
        self.bytes_before += segment.size
        self.bytes_after += size
        if not ids:
            return None
        await _stored(writer, waiting + await _encoded(ids))
        remaining = RemainingEntries(writer.ledger_id, first, ids)
        return replace(segment, entries=ids[-1] + 1, size=size, remaining=remaining)

    async def _left_of(self, entry: bytes, rule: RetentionRule) -> bytes | None:
        count = header.read(entry).count
        outcome = outcome_of(entry, self._outcomes)
        return await self._share.call(len(entry), count, rule.left_of, entry, outcome)


async def _encoded(ids: list[int]) -> list[bytes]:
    if len(ids) <= IDS_ON_THE_LOOP:
        return encoded(ids)
    return await trio.to_thread.run_sync(encoded, ids)


async def _stored(writer: LedgerWriter, entries: list[bytes]) -> None:
    """Append entries, and wait until they are stored."""
    waiting = Completion[None]()
    writer.append(entries, waiting.done)
    await waiting.result()
