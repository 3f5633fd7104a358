"""Pulsar's form: a message or a batch as its producer sent it. See `core/entry/form.py`.

The total functions run for most delivered entries. They are those of `metadata.py`, each of which
searches for one field, and accept an entry with the broker's header, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.entry.form import TransactionMark
from magnetar.core.entry.pulsar import metadata
from magnetar.core.entry.pulsar.compaction import KeyedMessages, UnpackedMessages
from magnetar.core.entry.pulsar.messages import PulsarMessage, batch_of
from magnetar.core.entry.pulsar.messages import remaining_places as remaining_places
from magnetar.core.entry.record import DetailedRecord, Record

NAME: Final = "pulsar"

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


def transaction_mark(_sent: bytes) -> TransactionMark | None:
    """None: sessions refuse messages of Pulsar's transactions so far."""
    return None


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
