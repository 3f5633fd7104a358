"""A ledger read from the server itself, over HTTP: for workers that cannot reach bookies.

It costs the server ten times as much as a read from its bookies, and more time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from magnetar.bookie.reading.range_read import Entries
from magnetar.core.kernel.errors import Corrupted
from magnetar.spark_connector.service import ReadingService


class GatewayLedger:
    """One ledger of a topic, by the ids that its entries have had before any compaction. Whoever
    made the service closes it.
    """

    def __init__(self, service: ReadingService, topic: str, ledger_id: int) -> None:
        self._service = service
        self._topic = topic
        self._ledger_id = ledger_id

    def read(self, first: int, last: int) -> Iterator[Entries]:
        """The entries `first` to `last` that are there, in runs; `Corrupted` for one that cannot be
        read.
        """
        following = first
        while following <= last:
            found = self._service.entries(self._topic, self._ledger_id, following, last)
            if found.lost:
                raise Corrupted(f"entry {self._ledger_id}:{following}: {found.lost}")
            begin = 0
            for place, (entry_id, _) in enumerate(found.entries):
                if entry_id - found.entries[begin][0] != place - begin:  # behind a gap
                    yield _run(found.entries[begin:place])
                    begin = place
            if found.entries:
                yield _run(found.entries[begin:])
            following = found.following

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """As of a ledger that is read from bookies; there is nothing to be closed."""


def _run(entries: Sequence[tuple[int, bytes]]) -> Entries:
    return Entries(entries[0][0], [entry for _, entry in entries])
