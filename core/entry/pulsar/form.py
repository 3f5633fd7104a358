"""Pulsar's form: a message or a batch as its producer sent it. See `core/entry/form.py`.

The total functions run for most delivered entries. They are those of `metadata.py`, each of which
searches for one field, and accept an entry with the broker's header, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from magnetar.core.entry.form import MarkKind, TransactionKey, TransactionMark
from magnetar.core.entry.pulsar import metadata
from magnetar.core.entry.pulsar.compaction import KeyedMessages, UnpackedMessages
from magnetar.core.entry.pulsar.messages import PulsarMessage, batch_of
from magnetar.core.entry.pulsar.messages import remaining_places as remaining_places
from magnetar.core.entry.record import DetailedRecord, Record
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.varints import varint

NAME: Final = "pulsar"
_COMMITTED, _ABORTED = 21, 22
"""Marker types (`MarkerType` of PulsarMarkers.proto)."""
_KINDS: Final[dict[int | None, MarkKind]] = {_COMMITTED: MarkKind.COMMIT, _ABORTED: MarkKind.ABORT}
_MARKER_BEGINS: Final = b"\x0a\x11pulsar.txn.marker\x10\x00\x18"
"""Producer name, sequence id, and the tag of the publish time."""
_SIZE: Final = Layout(">I")

publish_time = metadata.publish_time
deliver_at = metadata.deliver_at_time
ordering_key = metadata.sticky_key
sequence = metadata.sequence
chunk = metadata.chunk
entry_of = batch_of
"""A batch; the index serves as its sequence id."""
unpacked = UnpackedMessages
keyed = KeyedMessages


def latest_time(sent: bytes) -> int:
    """The event time, else the publish time, both of the entry, not of messages in a batch."""
    return metadata.event_time(sent) or metadata.publish_time(sent) or -1


def transaction_mark(sent: bytes) -> TransactionMark | None:
    """Read from the metadata, where an entry of a transaction has both halves of its id. Sessions
    see to it that no other entry has them.
    """
    key = metadata.transaction(sent)
    if key is None:
        return None
    return TransactionMark(key, _KINDS.get(metadata.marker_type(sent), MarkKind.PART))


def marker(key: TransactionKey, _epoch: int, now_ms: int, *, committed: bool) -> bytes:
    """A marker (`Markers.newTxnCommitMarker` of 4.2): metadata without a payload."""
    assert isinstance(key, tuple), "both halves of a transaction's id"
    most, least = key
    kind = _COMMITTED if committed else _ABORTED
    about = b"".join(
        (
            _MARKER_BEGINS,
            varint(now_ms),
            b"\xa0\x01",
            varint(kind),
            b"\xb0\x01",
            varint(least),
            b"\xb8\x01",
            varint(most),
        )
    )
    body = _SIZE.pack(len(about)) + about
    return b"\x0e\x01" + _SIZE.pack(crc32c(body)) + body


def records(sent: bytes, earlier: Sequence[bytes] = ()) -> Sequence[Record]:
    message = _whole(sent, earlier)
    return message.records() if message is not None else ()


def messages(sent: bytes, earlier: Sequence[bytes] = ()) -> Sequence[DetailedRecord]:
    message = _whole(sent, earlier)
    return message.messages() if message is not None else ()


def _whole(sent: bytes, earlier: Sequence[bytes]) -> PulsarMessage | None:
    """The message, joined with the chunks before; None of a marker."""
    message = PulsarMessage(sent)
    if message.is_marker:
        return None
    if earlier:
        before = b"".join([PulsarMessage(one).payload for one in earlier])
        message.payload = before + message.payload
    return message
