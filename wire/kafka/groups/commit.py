"""What a group has committed of one partition, and how it stands beside a cursor's position. Pure.

A cursor stores whole numbers by name. The client's note goes into a name, so that all of a commit
is stored in one piece or not at all. With it goes the position that the cursor had then: once
somebody else has moved the cursor, the numbers tell of the past.
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
_NOTE: Final = "kafka.note "


class CommittedPosition(Struct, frozen=True):
    """The offset to go on from."""

    offset: int
    epoch: int = -1
    note: str = ""
    """Of the client, for itself."""
    committed_ms: int = NEVER_MS
    """Never, where the offset is only where a subscription of Pulsar's stands."""
    expires_ms: int = NEVER_MS
    """The expiry that the client asked for; -1, mostly, leaves it to us."""


def stored(commit: CommittedPosition, mark: Position) -> dict[str, int]:
    """As a cursor keeps it that stands right behind `mark`."""
    return {
        _OFFSET: commit.offset,
        _EPOCH: commit.epoch,
        _COMMITTED: commit.committed_ms,
        _EXPIRES: commit.expires_ms,
        _LEDGER: mark[0],
        _ENTRY: mark[1],
        **({_NOTE + commit.note: 0} if commit.note else {}),
    }


def is_committed(numbers: Mapping[str, int]) -> bool:
    """Whether anything ever was, wherever the cursor stands now."""
    return _OFFSET in numbers


def committed(numbers: Mapping[str, int], mark: Position) -> CommittedPosition | None:
    """What was committed to a cursor; None if nothing was since somebody else moved it."""
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
