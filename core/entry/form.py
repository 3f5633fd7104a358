"""What core asks of an entry, whichever protocol it came in.

A form is the way in which one protocol's messages stand in an entry, behind the broker's header:

    entry = header | sent          header: `header.py`          sent: a form

Each form is one folder, whose module `form.py` satisfies the Protocol `Form`; `forms.py` lists them
and finds the form of an entry by how it begins. Only a form's folder knows its protocol's words
(a contract holds that): topics, cursors, compaction and transactions ask the form and branch on
none. A protocol that joins brings a folder and one line in `forms.py`.

Same-protocol traffic is never taken apart. An entry that another protocol reads is converted when
it is read, by way of `Record`s, and is not stored again (`conversion.py`).

Invariant: what reads raises `Corrupted` and nothing else; what is called total raises nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from magnetar.core.entry.compaction import UnpackedEntry
from magnetar.core.entry.record import Record


class Chunk(NamedTuple):
    """Which part of a large message an entry is (Pulsar's PIP-37)."""

    uuid: bytes
    """Of the message."""
    chunk_id: int
    """Counted from 0."""
    chunks: int
    """How many the message has."""

    @property
    def is_last(self) -> bool:
        return self.chunk_id == self.chunks - 1


class MarkKind(enum.Enum):
    """What an entry means to a transaction."""

    PART = enum.auto()
    """It is written in one."""
    COMMIT = enum.auto()
    ABORT = enum.auto()
    """It ends one, and has no messages."""


TransactionKey = int | tuple[int, int]
"""Names a transaction in one log, in its form's own way; core only compares keys.

Kafka's is the id of the producer, which has one transaction open at a time (KIP-98): the key comes
back with the next one. Pulsar's would be both halves of a TxnID (PIP-31), of which a producer may
have several open."""


class TransactionMark(NamedTuple):
    """Which transaction an entry belongs to, and how."""

    key: TransactionKey
    kind: MarkKind


class Form(Protocol):
    """See the module's docstring. `sent` is what stands behind the broker's header."""

    @property
    def NAME(self) -> str:  # noqa: N802  # a constant of the module
        ...

    # -- what the head of an entry states; none of these looks at the messages ------------------

    def publish_time(self, sent: bytes) -> int:
        """When its producer or the broker stamped it, in ms; 0 if unknown. Total."""
        ...

    def latest_time(self, sent: bytes) -> int:
        """The latest time of its messages, as far as its head states it; -1 if unknown. Total."""
        ...

    def deliver_at(self, sent: bytes) -> int | None:
        """Not to be delivered before this time, in ms; None for at once. Total."""
        ...

    def ordering_key(self, sent: bytes) -> bytes | None:
        """The key whose messages one consumer is to get in order; None if damaged. Total."""
        ...

    def sequence(self, sent: bytes) -> tuple[bytes, int] | None:
        """The producer's name and its highest sequence id in the entry, for deduplication by name;
        None if its producers are not numbered so. Total.
        """
        ...

    def chunk(self, sent: bytes) -> Chunk | None:
        """Which part of a large message it is; None for a whole one. Total."""
        ...

    def transaction_mark(self, sent: bytes) -> TransactionMark | None:
        """None if it has nothing to do with transactions."""
        ...

    # -- its messages ---------------------------------------------------------------------------

    def records(self, sent: bytes, earlier: Sequence[bytes] = ()) -> Sequence[Record]:
        """Its messages in order; none of an entry that is for brokers only. `earlier` are the
        chunks before this last one of a large message.
        """
        ...

    def entry_of(
        self, records: Sequence[Record], index: int, publish_time_ms: int, producer: str, /
    ) -> bytes:
        """An entry with these messages, the first of which has that index. `producer` is the name
        of the form that they come from, where nothing else is known of who sent them.
        """
        ...

    def unpacked(self, sent: bytes, /) -> UnpackedEntry:
        """The entry as compaction sees it."""
        ...


class TransactionalForm(Form, Protocol):
    """A form in which transactions are written."""

    def marker(self, key: int, epoch: int, now_ms: int, *, committed: bool) -> bytes:
        """The entry that ends a transaction. `epoch` is the generation of whoever uses the key, if
        keys come back; it fences earlier ones.
        """
        ...
