"""A group's commit for one partition, as properties of a cursor. Pure.

A cursor stores integers by name (`PositionInfo.properties` of Pulsar). The client's metadata string
is part of a name, so that a commit is stored atomically. The position of the cursor is stored with
it: once another client has moved the cursor, the commit is out of date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from magnetar.core.ledger.log.chain import Position

NEVER_MS: Final = -1

_OFFSET: Final = "kafka.offset"
_EPOCH: Final = "kafka.leader-epoch"
_COMMITTED: Final = "kafka.committed-ms"
_EXPIRES: Final = "kafka.expires-ms"
_LEDGER: Final = "kafka.ledger"
_ENTRY: Final = "kafka.entry"
_ORDER: Final = "kafka.order"
_NOTE: Final = "kafka.note "
_NS_PER_MS: Final = 1_000_000


class CommittedPosition(Struct, frozen=True):
    """A committed offset."""

    offset: int
    epoch: int = -1
    note: str = ""
    """The client's metadata."""
    committed_ms: int = NEVER_MS
    """`NEVER_MS` if the offset is the position of a Pulsar subscription."""
    expires_ms: int = NEVER_MS
    """The expiry that an old client has requested; usually -1, for the broker's retention."""
    order: int = 0
    """The `Offsets.next_order` of a transactional commit; 0 for a plain one."""


def stored(commit: CommittedPosition, mark: Position, order: int) -> dict[str, int]:
    """The properties for a commit to a cursor with that mark-delete position."""
    return {
        _ORDER: order,
        _OFFSET: commit.offset,
        _EPOCH: commit.epoch,
        _COMMITTED: commit.committed_ms,
        _EXPIRES: commit.expires_ms,
        _LEDGER: mark[0],
        _ENTRY: mark[1],
        **({_NOTE + commit.note: 0} if commit.note else {}),
    }


def order_of(numbers: Mapping[str, int]) -> int:
    """The order of the last commit to a cursor, even if the cursor was moved since; 0 for none.

    Before 0.1 had orders, only the time of a commit was stored.
    """
    return numbers.get(_ORDER, numbers.get(_COMMITTED, 0) * _NS_PER_MS)


def is_committed(numbers: Mapping[str, int]) -> bool:
    """Whether there ever was a commit, even if the cursor was moved since."""
    return _OFFSET in numbers


def committed(numbers: Mapping[str, int], mark: Position) -> CommittedPosition | None:
    """The last commit to a cursor; None if there is none, or the cursor was moved since."""
    if _OFFSET not in numbers or (numbers.get(_LEDGER), numbers.get(_ENTRY)) != mark:
        return None
    notes = [name for name in numbers if name.startswith(_NOTE)]
    return CommittedPosition(
        offset=numbers[_OFFSET],
        epoch=numbers.get(_EPOCH, -1),
        note=notes[0].removeprefix(_NOTE) if notes else "",
        committed_ms=numbers.get(_COMMITTED, NEVER_MS),
        expires_ms=numbers.get(_EXPIRES, NEVER_MS),
    )
