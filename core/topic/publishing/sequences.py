"""The highest sequence id of each producer name of one topic. Pure.

Theory. Sequence ids of one producer name only rise. Two numbers per name say all: the highest that
was handed to storage (pushed) and the highest that is stored. A message not above `stored` is a
duplicate. One above `stored` and not above `pushed` may yet fail: nobody can say, so its producer
is to come again (`MessageDeduplication.java` of Pulsar 4.2 has the same two maps). Parts of a large
message share one sequence id, which counts with the last of them.

    handed to storage: pushed = id        stored: stored = id        failed: pushed = stored

Invariants: `stored` never says more than storage holds; no more than a limit of names are known,
the one that stored nothing for longest goes first.
"""

from __future__ import annotations

import enum
from typing import Final

from magnetar.core.entry.forms import form_of
from magnetar.core.ledger.log.chain import Position

NAMES_MAX: Final = 10_000
"""Producer names known to one topic."""


class Verdict(enum.Enum):
    """What to do with a message."""

    NEW = enum.auto()
    DUPLICATE = enum.auto()
    """It is stored."""
    UNKNOWN = enum.auto()
    """It is on its way to storage, and might not get there."""


class ProducerSequences:
    """See the module's docstring. A view of the log (`core/ledger/fold/fold.py`)."""

    __slots__ = ("pushed", "stored")

    def __init__(self) -> None:
        self.pushed: dict[str, int] = {}
        self.stored: dict[str, int] = {}
        """The name that stored something last is last."""

    def judge(self, name: str, sequence_id: int) -> Verdict:
        """Whether a message with that (highest) sequence id was seen before."""
        if sequence_id <= self.stored.get(name, -1):
            return Verdict.DUPLICATE
        return Verdict.UNKNOWN if sequence_id <= self.pushed.get(name, -1) else Verdict.NEW

    def push(self, name: str, sequence_id: int) -> None:
        """It is handed to storage."""
        self.pushed[name] = max(sequence_id, self.pushed.get(name, -1))

    def store(self, name: str, sequence_id: int) -> None:
        """It is stored."""
        self.stored[name] = max(sequence_id, self.stored.pop(name, -1))
        while len(self.stored) > NAMES_MAX:
            self.forget(next(iter(self.stored)))

    def forget(self, name: str) -> None:
        """Its producer will not come again."""
        self.stored.pop(name, None)
        self.pushed.pop(name, None)

    def fail(self, name: str) -> None:
        """What was handed to storage is not there, nor anything behind it."""
        if name in self.stored:
            self.pushed[name] = self.stored[name]
        else:
            self.pushed.pop(name, None)

    # -- as a view of the log -----------------------------------------------------------------

    def apply(self, sent: bytes, _index: int, _position: Position, _now_ms: int) -> None:
        """Apply an entry that is replayed; some forms number their producers in another way."""
        found = form_of(sent).sequence(sent)
        if found is not None and counts(sent):
            self.store(found[0].decode(errors="replace"), found[1])

    def forget_before(self, _index: int) -> None:
        """What was sent stays known, for it may be sent again."""

    def snapshot(self) -> dict[str, int]:
        return dict(self.stored)

    def restore(self, image: dict[str, int], _now_ms: int) -> None:
        self.stored = dict(image)


def counts(sent: bytes) -> bool:
    """Whether its sequence id is complete: of a chunked message only with the last chunk."""
    part = form_of(sent).chunk(sent)
    return part is None or part.is_last
