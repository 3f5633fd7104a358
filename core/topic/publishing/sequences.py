"""The highest sequence id of each producer name of one topic. Pure.

Theory. Sequence ids of one producer name ascend. Two numbers per name suffice: the highest that was
written to storage (pushed) and the highest that is stored. A message up to `stored` is a duplicate.
One after `stored` and up to `pushed` may still fail, so the outcome is unknown and its producer is
to send it again (`MessageDeduplication.java` of Pulsar 4.2 has the same two maps). The chunks of a
large message share one sequence id, which counts with the last one (PIP-37).

    written: pushed = id        stored: stored = id        failed: pushed = stored

Invariants: `stored` is never higher than what storage has; the number of names is limited, and the
name that stored nothing for longest is removed first.
"""

from __future__ import annotations

import enum
from typing import Final

from magnetar.core.entry.forms import form_of
from magnetar.core.ledger.log.chain import Position

NAMES_MAX: Final = 10_000
"""Producer names known to one topic."""


class Verdict(enum.Enum):
    """The result of a check for duplicates."""

    NEW = enum.auto()
    DUPLICATE = enum.auto()
    """A message with that id, or a higher one, is stored."""
    UNKNOWN = enum.auto()
    """A message with that id is being written, and may fail."""


class ProducerSequences:
    """See the module's docstring. A view of the log (`core/ledger/fold/fold.py`)."""

    __slots__ = ("pushed", "stored")

    def __init__(self) -> None:
        self.pushed: dict[str, int] = {}
        self.stored: dict[str, int] = {}
        """By name, in the order of the last stored message."""

    def judge(self, name: str, sequence_id: int) -> Verdict:
        """Whether a message with that (highest) sequence id is a duplicate."""
        if sequence_id <= self.stored.get(name, -1):
            return Verdict.DUPLICATE
        return Verdict.UNKNOWN if sequence_id <= self.pushed.get(name, -1) else Verdict.NEW

    def push(self, name: str, sequence_id: int) -> None:
        """A message is being written."""
        self.pushed[name] = max(sequence_id, self.pushed.get(name, -1))

    def store(self, name: str, sequence_id: int) -> None:
        """A message is stored."""
        self.stored[name] = max(sequence_id, self.stored.pop(name, -1))
        while len(self.stored) > NAMES_MAX:
            self.forget(next(iter(self.stored)))

    def forget(self, name: str) -> None:
        """Remove a producer."""
        self.stored.pop(name, None)
        self.pushed.pop(name, None)

    def fail(self, name: str) -> None:
        """A write has failed, and so have all later ones."""
        if name in self.stored:
            self.pushed[name] = self.stored[name]
        else:
            self.pushed.pop(name, None)

    # -- as a view of the log -----------------------------------------------------------------

    def apply(self, sent: bytes, _index: int, _position: Position, _now_ms: int) -> None:
        """Replay an entry; forms without producer names have no sequence."""
        found = form_of(sent).sequence(sent)
        if found is not None and counts(sent):
            self.store(found[0].decode(errors="replace"), found[1])

    def forget_before(self, _index: int) -> None:
        """Do nothing: a message may be sent again after it was deleted."""

    def snapshot(self) -> dict[str, int]:
        return dict(self.stored)

    def restore(self, image: dict[str, int], _now_ms: int) -> None:
        self.stored = dict(image)


def counts(sent: bytes) -> bool:
    """Whether its sequence id counts: that of a chunked message counts with the last chunk."""
    part = form_of(sent).chunk(sent)
    return part is None or part.is_last
