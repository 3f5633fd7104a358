"""A ledger opened for reading, without a recovery: nothing is written, and nobody is fenced.

    with open_ledger(7, source) as ledger:
        for run in ledger.read(0, ledger.last_confirmed()):
            use(run.first, run.payloads)

An open ledger may be read as far as its last add confirmed. What is not confirmed may yet be
dropped by a recovery, so that it is not read here.

Invariant: what is read was confirmed by the ledger's writer, and is what he wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from magnetar.bookie.reading.errors import UnreadEntry
from magnetar.bookie.reading.exchange import Exchange
from magnetar.bookie.reading.health import BookieHealth
from magnetar.bookie.reading.lac_read import LacRead
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.range_read import Entries, RangeRead
from magnetar.bookie.reading.sources import LedgerSource
from magnetar.core.kernel.errors import EntryNotFound, Invalid


class ReadHandle:
    """See the module's docstring."""

    def __init__(
        self,
        ledger_id: int,
        source: LedgerSource,
        options: ReadOptions,
        password: bytes | None,
        last_confirmed: int,
    ) -> None:
        self.ledger_id = ledger_id
        self._source = source
        self._options = options
        self._password = password
        self._health = BookieHealth(options.avoid_seconds)
        self._confirmed = last_confirmed
        proof = source.proof(ledger_id)
        self._version2 = Exchange(source.address, proof)
        self._version3 = Exchange(source.address, proof)
        self.ledger = self._look_up()
        """What the metadata say; as of now after `refresh`."""

    def _look_up(self) -> ReadableLedger:
        metadata = self._source.metadata(self.ledger_id)
        return ReadableLedger(self.ledger_id, metadata, self._password)

    def refresh(self) -> bool:
        """Read the metadata again; whether they have changed."""
        found = self._look_up()
        changed = found.metadata != self.ledger.metadata
        self.ledger = found
        return changed

    def last_confirmed(self) -> int:
        """The last entry that may be read, -1 if there is none; asks the bookies of an open ledger.

        `StorageFailed` if too few of them answer.
        """
        if not self.ledger.closed:
            self.refresh()
        if self.ledger.closed:
            return self.ledger.last_entry_id
        asked = LacRead(self.ledger, self._options)
        while not asked.finished:
            self._version3.turn(asked)
        for bookie in asked.waited_for:
            self._version3.drop(bookie)
        self._confirmed = max(self._confirmed, asked.lac)
        return self._confirmed

    def read(self, first: int = 0, last: int | None = None) -> Iterator[Entries]:
        """The entries `first` to `last`, or to the last one confirmed: in order, in runs.

        `EntryNotFound` if `last` is not confirmed; then, or for an entry that cannot be read
        (`UnreadEntry`), the entries before it have been given. Whoever stops before the end closes
        the iterator.
        """
        if last is None:
            last = self.last_confirmed()
        elif last > self._known_confirmed() and last > self.last_confirmed():
            raise EntryNotFound(f"entry {self.ledger_id}:{last} is not confirmed")
        if first < 0:
            raise Invalid(f"{first} is no entry")
        reading = self._begin(first, last)
        try:
            while not reading.finished:
                try:
                    taken = reading.take()
                except UnreadEntry:
                    if not self.refresh():  # else another bookie may have it now
                        raise
                    self._end(reading)
                    reading = self._begin(reading.next, last)
                    continue
                if taken is None:
                    self._version2.turn(reading)
                else:
                    yield taken
        finally:
            self._end(reading)

    def _known_confirmed(self) -> int:
        return self.ledger.last_entry_id if self.ledger.closed else self._confirmed

    def _begin(self, first: int, last: int) -> RangeRead:
        return RangeRead(self.ledger, first, last, self._options, self._health)

    def _end(self, reading: RangeRead) -> None:
        """Nothing that is still on its way may be taken for an answer to the next request."""
        for bookie in reading.waited_for:
            self._version2.drop(bookie)

    def entries(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The same, one by one: id and payload."""
        for run in self.read(first, last):
            yield from enumerate(run.payloads, run.first)

    def close(self) -> None:
        self._version2.close()
        self._version3.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_ledger(
    ledger_id: int,
    source: LedgerSource,
    options: ReadOptions | None = None,
    *,
    password: bytes | None = None,
    last_confirmed: int = -1,
) -> ReadHandle:
    """Open a ledger for reading; `LedgerNotFound` if there is none.

    `password` is needed for digests of a key if it is not in the metadata. `last_confirmed` is what
    the caller knows of an open ledger, from its writer.
    """
    return ReadHandle(ledger_id, source, options or ReadOptions(), password, last_confirmed)
