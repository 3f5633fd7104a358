"""The interface of a form: how one protocol encodes its messages in an entry.

A form follows the broker's header:

    entry = header | sent          header: `header.py`          sent: a form

Each form is one folder, whose module `form.py` satisfies the Protocol `Form`; `forms.py` lists them
and determines the form of an entry from its first bytes. Only a form's folder uses its protocol's
terms (a contract checks that): topics, cursors, compaction and transactions call the form and do
not branch on which one it is. A new protocol adds a folder and one line in `forms.py`.

Entries are not decoded for readers of the same protocol. For another protocol they are converted
when they are read, through `Record`s, and not stored again (`conversion.py`).

Invariant: functions that decode raise `Corrupted` and nothing else; total functions raise nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from magnetar.core.entry.compaction import UnpackedEntry
from magnetar.core.entry.record import DetailedRecord, Record

SIZE_BYTES: Final = 4
"""The size of an entry's metadata, before them."""


class Chunk(NamedTuple):
    """The chunk of a large message that an entry is (Pulsar's PIP-37)."""

    uuid: bytes
    """The id of the message."""
    chunk_id: int
    """Counted from 0."""
    chunks: int
    """The number of chunks of the message."""

    @property
    def is_last(self) -> bool:
        return self.chunk_id == self.chunks - 1


class MarkKind(enum.Enum):
    """How an entry belongs to a transaction."""

    PART = enum.auto()
    """It has messages of the transaction."""
    COMMIT = enum.auto()
    ABORT = enum.auto()
    """It ends the transaction, and has no messages."""


TransactionKey = int | tuple[int, int]
"""Names a transaction in one log, in its form's own way; core only compares keys.

Kafka's is the id of the producer, which has one transaction open at a time (KIP-98): the key comes
back with the next one. Pulsar's has both halves of a TxnID (PIP-31), of which a producer may have
several open, and which never comes back."""


class TransactionMark(NamedTuple):
    """Which transaction an entry belongs to, and how."""

    key: TransactionKey
    kind: MarkKind


class Form(Protocol):
    """See the module's docstring. `sent` is the entry without the broker's header."""

    @property
    def NAME(self) -> str:  # noqa: N802  # a constant of the module
        ...

    # -- what the head of an entry states; none of these looks at the messages ------------------

    def publish_time(self, sent: bytes) -> int:
        """The publish time in ms; 0 if unknown. Total."""
        ...

    def latest_time(self, sent: bytes) -> int:
        """The latest time of its messages, from its metadata; -1 if unknown. Total."""
        ...

    def deliver_at(self, sent: bytes) -> int | None:
        """The time in ms before which it is not delivered; None for at once. Total."""
        ...

    def ordering_key(self, sent: bytes) -> bytes | None:
        """The key by which messages are ordered for a consumer; None if damaged. Total."""
        ...

    def sequence(self, sent: bytes) -> tuple[bytes, int] | None:
        """The producer's name and the highest sequence id of the entry, for deduplication by name;
        None if the form has none. Total.
        """
        ...

    def chunk(self, sent: bytes) -> Chunk | None:
        """The chunk that it is; None for whole messages. Total."""
        ...

    def remaining_places(self, sent: bytes) -> Sequence[int]:
        """The places of the messages that compaction has left of a batch, if the entry tells; none
        if it is whole. Total.
        """
        ...

    def transaction_mark(self, sent: bytes) -> TransactionMark | None:
        """The transaction that it belongs to; None if to none."""
        ...

    # -- its messages ---------------------------------------------------------------------------

    def records(self, sent: bytes, earlier: Sequence[bytes] = ()) -> Sequence[Record]:
        """Its messages in order; none of an entry for brokers only. `earlier` are the chunks
        before this last one of a large message.
        """
        ...

    def messages(self, sent: bytes, earlier: Sequence[bytes] = ()) -> Sequence[DetailedRecord]:
        """The same messages, with all that is known of each."""
        ...

    def entry_of(
        self, records: Sequence[Record], index: int, publish_time_ms: int, producer: str, /
    ) -> bytes:
        """An entry with these messages, the first of which has that index. `producer` is the name
        of the form that they come from, since their producer is not known.
        """
        ...

    def unpacked(self, sent: bytes, /) -> UnpackedEntry:
        """The entry as compaction in place sees it."""
        ...

    def keyed(self, sent: bytes, /) -> UnpackedEntry:
        """The entry as the compaction into a second ledger sees it, whose readers are of this
        protocol, or get the entry converted.
        """
        ...


class TransactionalForm(Form, Protocol):
    """A form in which transactions are written."""

    def marker(self, key: TransactionKey, epoch: int, now_ms: int, *, committed: bool) -> bytes:
        """The entry that ends a transaction. `epoch` is the generation of the key's user, which
        fences earlier ones (KIP-360), if keys are used again.
        """
        ...
