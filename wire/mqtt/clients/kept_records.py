"""The encoded records of all sessions in memory, by client id, and how much memory that is.

Invariant: `bytes` is the sum of all records and of what each costs besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

OVERHEAD_BYTES: Final = 250
"""What a record costs besides its own bytes: two objects, and their places in the mapping."""


class KeptRecords:
    """See the module's docstring."""

    __slots__ = ("_records", "bytes")

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, client_id: str) -> bool:
        return client_id in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def get(self, client_id: str) -> bytes | None:
        return self._records.get(client_id)

    def keep(self, client_id: str, record: bytes) -> None:
        """Keep a record, or replace it."""
        self.remove(client_id)
        self._records[client_id] = record
        self.bytes += _weight(client_id, record)

    def remove(self, client_id: str) -> bool:
        """Remove a record; returns whether there was one."""
        found = self._records.pop(client_id, None)
        if found is None:
            return False
        self.bytes -= _weight(client_id, found)
        return True


def _weight(client_id: str, record: bytes) -> int:
    return OVERHEAD_BYTES + len(client_id) + len(record)
