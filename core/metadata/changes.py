"""The changes of one commit of the embedded store, as bytes for its log and as SQL statements.

A change states the result, not the operation: applying it twice, or to a tree that has it already,
gives the same tree. So a log may be replayed from any commit before its end.

Invariant: `decode(encode(changes)) == changes`, and hostile bytes raise `ValueError` only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from magnetar.core.metadata import schema


class Put(Struct, frozen=True, array_like=True, tag=1):
    """Set the value of a path."""

    path: str
    value: bytes
    version: int
    lease: bool


class Delete(Struct, frozen=True, array_like=True, tag=2):
    """Delete the value of a path."""

    path: str


class Count(Struct, frozen=True, array_like=True, tag=3):
    """Raise a counter: numbers below `next` may be in use."""

    path: str
    next: int


Change = Put | Delete | Count

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Change])


def encode(changes: Sequence[Change]) -> bytes:
    return _encoder.encode(changes)


def decode(body: bytes) -> list[Change]:
    return _decoder.decode(body)  # its errors are ValueErrors


def apply(connection: sqlite3.Connection, changes: Iterable[Change]) -> None:
    for change in changes:
        if isinstance(change, Put):
            row = (change.path, change.value, change.version, int(change.lease))
            connection.execute(schema.PUT, row)
        elif isinstance(change, Delete):
            connection.execute(schema.DELETE, (change.path,))
        else:
            connection.execute(schema.COUNT, (change.path, change.next))
