"""Reading messages without consuming them: peek, get by id, examine; ids by time and at the end.

The body of an answer is the uncompressed payload (a batch stays a batch); headers carry the
metadata. Encrypted payloads stay encrypted.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.entry import conversion
from magnetar.core.entry.forms import NATIVE, form_of
from magnetar.core.entry.header import read as read_header
from magnetar.core.entry.pulsar.compression import CODECS, decompress
from magnetar.core.entry.pulsar.metadata import message_count
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.dates import iso_date
from magnetar.core.kernel.errors import (
    Corrupted,
    EntryNotFound,
    Invalid,
    LedgerNotFound,
    NotFound,
)
from magnetar.core.ledger.log.chain import START, Chain, Position
from magnetar.core.ledger.read.index_lookup import IndexLookup
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import find_by_time, mark_before
from magnetar.wire.http.admin.topic_lookup import AdminMessageId, Target, message_id, stored
from magnetar.wire.http.options import MessageMetadata, StoredMessage
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, not_here

ENTRIES_PER_REST: Final = 1_000
"""Positions skipped before yielding to the loop."""


class LastMessageId(msgspec.Struct, frozen=True, rename="camel"):
    """As `AdminMessageId`, with the place in a batch."""

    ledger_id: int
    entry_id: int
    partition_index: int
    batch_index: int


# -- one message -------------------------------------------------------------------------------


async def peek(request: AdminRequest) -> Response:
    """The n-th message that a subscription has not acknowledged, counted from 1.

    A missing subscription is created at the beginning of the topic, as by Apache's
    broker (`PersistentTopicsBase.internalPeekNthMessageAsync`): tools inspect topics that way.
    """
    topic = await stored(request)
    name = request.subscription
    begin = mark_before(topic.ledger.chain, START)
    found = topic.subscriptions.get(name)  # nobody but its holder may attach to a held one
    cursor = (found or await topic.subscription(name, start=begin)).cursor
    requested = max(request.path_number("position"), 1)
    chain = topic.ledger.chain
    async for position in Cooperative(_after(chain, cursor.mark_delete), ENTRIES_PER_REST):
        if not cursor.acks.is_acked(position):
            requested -= 1
            if not requested:
                return await _shown(request, topic, position)
    raise HTTPException(404, "Message not found")


def _after(chain: Chain, position: Position) -> Iterator[Position]:
    """The positions of the entries after a position."""
    position = chain.after(position)
    while chain.has(position):
        yield position
        position = chain.after(position)


async def get(request: AdminRequest) -> Response:
    topic = await stored(request)
    return await _shown(
        request, topic, (request.path_number("ledger"), request.path_number("entry"))
    )


async def examine(request: AdminRequest) -> Response:
    """The n-th message of the topic, from its beginning or its end."""
    topic = await stored(request)
    chain = topic.ledger.chain
    place = max(request.number("messagePosition", 1), 1)
    start = request.text("initialPosition", "latest")
    if start not in ("latest", "earliest"):
        raise Invalid("initialPosition must be earliest or latest")
    if place > chain.entries:
        raise HTTPException(412, f"the topic has only {chain.entries} messages")
    skipped = place - 1 if start == "earliest" else chain.entries - place
    for segment in chain.segments:
        entries = chain.last_entry_of(segment) + 1
        if skipped < entries:
            return await _shown(request, topic, (segment.ledger_id, skipped))
        skipped -= entries
    raise EntryNotFound("the messages were deleted meanwhile")


async def _shown(request: AdminRequest, topic: PersistentTopic, position: Position) -> Response:
    read_entry = request.options.read_entry
    if read_entry is None:
        raise not_here("messages are not shown by this server")
    if position > topic.ledger.chain.confirmed or min(position) < 0:
        raise EntryNotFound(f"there is no message {position[0]}:{position[1]}")
    if all(segment.ledger_id != position[0] for segment in topic.ledger.chain.segments):
        raise LedgerNotFound(f"ledger {position[0]} is none of this topic")
    entry = read_entry(_as_message((await topic.ledger.read(position, 1, 1)).payloads[0]))
    metadata = entry.metadata
    payload = entry.payload
    if not metadata.encryption_keys:
        payload = decompress(payload, metadata.compression, metadata.uncompressed_size)
    headers = {"X-Pulsar-Message-ID": f"{position[0]}:{position[1]}", **_headers(entry)}
    response = Response(payload, media_type="application/octet-stream")
    # in this spelling: Starlette would make names lower-case, but the Java tool expects capitals
    response.raw_headers += [(name.encode(), value.encode()) for name, value in headers.items()]
    return response


def _as_message(stored: bytes) -> bytes:
    """An entry as Pulsar clients receive it, converted if it is stored in another form."""
    header = read_header(stored)
    sent = stored[header.size :]
    if form_of(sent) is NATIVE:
        return stored
    converted, _ = conversion.converted(sent, NATIVE, header.first_index)
    return stored[: header.size] + converted if converted else stored


def _headers(entry: StoredMessage) -> dict[str, str]:
    """The metadata as headers, under the names that admin tools expect."""
    found: dict[str, object] = {
        "X-Pulsar-Broker-Entry-METADATA-timestamp": iso_date(entry.broker_timestamp),
        "X-Pulsar-Broker-Entry-METADATA-index": entry.index,
        **_producers_headers(entry.metadata),
        **_batch_headers(entry.metadata),
    }
    return {name: _safe(str(value)) for name, value in found.items() if value is not None}


def _producers_headers(about: MessageMetadata) -> dict[str, object]:
    encrypted = bool(about.encryption_keys)
    return {
        "X-Pulsar-producer-name": about.producer_name,
        "X-Pulsar-sequence-id": about.sequence_id,
        "X-Pulsar-publish-time": iso_date(about.publish_time),
        "X-Pulsar-event-time": iso_date(about.event_time or None),
        "X-Pulsar-deliver-at-time": iso_date(about.deliver_at_time),
        "X-Pulsar-null-value": "true" if about.null_value else None,
        "X-Pulsar-replicated-from": about.replicated_from,
        "X-Pulsar-partition-key": about.partition_key,
        "X-Pulsar-partition-key-b64-encoded": "true" if about.partition_key_is_base64 else None,
        "X-Pulsar-Base64-ordering-key": _base64(about.ordering_key),
        "X-Pulsar-Base64-schema-version-b64encoded": _base64(about.schema_version),
        "X-Pulsar-compression": CODECS[about.compression][0] if about.compression else None,
        "X-Pulsar-uncompressed-size": about.uncompressed_size or None,
        "X-Pulsar-Is-Encrypted": "true" if encrypted else None,
        "X-Pulsar-PROPERTY": json.dumps(dict(about.properties)),
    }


def _batch_headers(about: MessageMetadata) -> dict[str, object]:
    chunked = about.uuid is not None
    return {
        "X-Pulsar-num-batch-message": about.batch_size,
        "X-Pulsar-batch-size": about.uncompressed_size if about.batch_size is not None else None,
        "X-Pulsar-uuid": about.uuid,
        "X-Pulsar-chunk-id": about.chunk_id if chunked else None,
        "X-Pulsar-num-chunks-from-msg": about.chunk_count if chunked else None,
        "X-Pulsar-total-chunk-msg-size": about.chunks_bytes if chunked else None,
    }


def _safe(value: str) -> str:
    """A header value: ASCII without control characters, as JSON already is."""
    plain = "".join(" " if letter < " " or letter == "\x7f" else letter for letter in value)
    return plain if plain.isascii() else plain.encode("ascii", "backslashreplace").decode()


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


# -- ids ---------------------------------------------------------------------------------------


async def last_message_id(request: AdminRequest) -> AdminMessageId | LastMessageId:
    topic = await stored(request)
    last = topic.ledger.chain.confirmed
    if last[1] >= 0:
        with suppress(Corrupted):  # a lost entry is still the last one
            entry = (await topic.ledger.read(last, 1, 1)).payloads[0]
            count, is_batch = message_count(entry[read_header(entry).size :])
            if is_batch:
                return LastMessageId(*last, topic.name.partition_index, count - 1)
    return message_id(topic, last)


async def id_by_time(request: AdminRequest) -> AdminMessageId:
    """The first message published at that time or later; the end if there is none."""
    topic = await stored(request)
    return message_id(topic, await find_by_time(topic.ledger, request.path_number("timestamp")))


async def id_by_index(request: AdminRequest) -> AdminMessageId:
    """The entry with the message of that index (PIP-415), or of the next one if it was compacted
    away; -1:-1 if it was deleted, as by `PersistentTopicsBase.java` of 4.2.
    """
    index = request.number("index", -1)
    topic = await stored(request)
    log = topic.ledger
    if index < 0:
        raise NotFound(f"Invalid message index: {index}")
    if not log.chain.entries or index >= log.confirmed_index:
        raise NotFound(f"Message not found for index {index}")
    if index < log.first_index:
        return message_id(topic, START)  # it was deleted
    return message_id(topic, await IndexLookup(log).find(index))


async def backlog_bytes(request: AdminRequest) -> int:
    """The bytes from a message to the end of the topic, the message included."""
    topic = await stored(request)
    target = await request.json(Target)
    return topic.ledger.bytes_after(mark_before(topic.ledger.chain, target.position))


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("GET", f"{HERE}/subscription/{{subscription}}/position/{{position}}", peek, Needs.CONSUMER),
    ("GET", f"{HERE}/ledger/{{ledger}}/entry/{{entry}}", get, Needs.CONSUMER),
    ("GET", f"{HERE}/examinemessage", examine, Needs.CONSUMER),
    ("GET", f"{HERE}/lastMessageId", last_message_id, Needs.CONSUMER),
    ("GET", f"{HERE}/messageid/{{timestamp}}", id_by_time, Needs.CONSUMER),
    ("GET", f"{HERE}/getMessageIdByIndex", id_by_index, Needs.CONSUMER),
    ("PUT", f"{HERE}/backlogSize", backlog_bytes, Needs.CONSUMER),
)
