"""Logs with keys in them, and what compaction is to leave of them, told naively."""

from __future__ import annotations

from typing import NamedTuple

from magnetar.core.compaction.plan import plan
from magnetar.core.compaction.retention_rule import Outcomes, Terms, TransactionOutcome
from magnetar.core.compaction.rewrite import Rewrite
from magnetar.core.compaction.rule import Rule
from magnetar.core.entry import conversion, header
from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.kafka.compression import compress_records
from magnetar.core.entry.kafka.record_batch import HEADER_BYTES, header_of
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.ledger_list import CLEAN_TO
from magnetar.core.ledger.log.ledger_list_record import MIXED
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.policy.values import Compaction
from magnetar.core.testing.bench import Bench, Outcome, settled


class Message(NamedTuple):
    """One message of a log."""

    index: int
    key: bytes
    value: bytes | None


def batch(
    records: list[tuple[bytes, bytes | None]], codec: int = 0, producer_id: int = -1, **fields: int
) -> bytes:
    """A batch as a client sends it, with times 1000, 1001, ..."""
    made = [
        Record(place, 1000 + place, key, value, ((b"h", b"x"),))
        for place, (key, value) in enumerate(records)
    ]
    plain = record_batch.batch_of(made, 0, len(made))
    about = header_of(plain)._replace(
        producer_id=producer_id, producer_epoch=0, first_sequence=0, **fields
    )
    about = about._replace(attributes=about.attributes | codec)
    return record_batch.joined(about, compress_records(plain[HEADER_BYTES:], codec))


def wrapped(made: bytes) -> bytes:
    """As the entry of a Kafka producer."""
    return form.wrapped(made, header_of(made).last_delta + 1, 1)


async def appended(ledger: ManagedLedger, *tails: bytes, count: int | None = None) -> None:
    """Each as an entry; Kafka's say how many messages they have."""
    if not ledger.mixed:
        await ledger.set_property(MIXED, "")
    for tail in tails:
        found = form.batch_in(tail)
        messages = header_of(found).last_delta + 1 if found is not None else count or 1
        ledger.append([tail], [messages], Outcome())
        await settled()


async def entries(ledger: ManagedLedger) -> list[tuple[tuple[int, int], bytes]]:
    """Everything in a log: positions, and entries as they are stored."""
    found, position = [], ledger.chain.first
    while ledger.chain.has(position):
        part = await ledger.read(position, 7, 1 << 20)
        for place, entry in enumerate(part.stored()):
            found.append(((part.ledger_id, part.first_entry + place), entry))
        position = ledger.chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
    return found


async def messages(ledger: ManagedLedger) -> list[Message]:
    """Everything in a log, message by message."""
    found = []
    for _, entry in await entries(ledger):
        about = header.read(entry)
        found += [
            Message(about.first_index + one.place, one.key or b"", one.value)
            for one in conversion.records_of(entry[about.size :])
        ]
    return found


def unknown(_writer: int, _index: int) -> TransactionOutcome:
    """Nobody knows what became of a transaction."""
    return TransactionOutcome.OPEN


async def compacted(
    made: Bench,
    ledger: ManagedLedger,
    *,
    retention_ms: int = 1000,
    keys_max: int = 1000,
    outcomes: Outcomes = unknown,
) -> bool:
    """Compact it if there is something to do."""
    now_ms = made.clock.wall_ms()
    clean_to = int(ledger.properties.get(CLEAN_TO, 0))
    expected = Compaction(dirty_ratio=0, delete_retention_ms=retention_ms)
    found = plan(ledger.chain, clean_to, expected, now_ms)
    if found is None:
        return False
    terms = Terms(Rule(), now_ms, retention_ms, clean_to)
    await Rewrite(ledger, found, terms, outcomes, lambda: None, keys_max).run()
    return True
