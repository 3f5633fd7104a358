"""What open transactions hold in a cursor, as its snapshots have it. Pure.

A module of its own, which is not compiled: mypyc leaves of the types of a named tuple too little
for msgspec to read it by.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import Corrupted


class HeldImage(NamedTuple):
    """What one transaction holds; masks are bytes, since they may be long."""

    key: TransactionKey
    ranges: list[tuple[int, int, int]]
    """Ledger, first entry, last entry."""
    parts: list[tuple[int, int, bytes, int]]
    """Ledger, entry, mask of messages that are not acknowledged, size of the batch."""
    up_to: tuple[int, int, bytes, int] | None


_decode: Final = msgspec.msgpack.Decoder(list[HeldImage]).decode


def encode(images: list[HeldImage]) -> bytes:
    return msgspec.msgpack.encode(images)


def decode(data: bytes) -> list[HeldImage]:
    """Raises `Corrupted` if it cannot be read."""
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise Corrupted(f"held acknowledgements cannot be read: {error}") from error
