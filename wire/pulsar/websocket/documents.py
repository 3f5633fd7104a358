"""The JSON documents of the WebSocket API, with the names of `org.apache.pulsar.websocket.data`.

Unknown fields are ignored, and those without a value are left out. Numbers and booleans are taken
for texts where these are asked for, as by Jackson: Apache's own example says `"context": 5`. Pure.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

Text = str | None
Document = TypeVar("Document")


class Failure(IntEnum):
    """Numbers of errors (`WebSocketError.java` of 4.2)."""

    NOT_JSON = 3
    PAYLOAD = 7
    UNKNOWN = 8


class Published(Struct, frozen=True, rename="camel"):
    """A producer's message, as its client says it."""

    payload: Text = None
    properties: dict[str, str] | None = None
    context: Text = None
    key: Text = None
    replication_clusters: list[str] | None = None
    event_time: Text = None
    disable_replication: bool = False
    deliver_at: int = 0
    deliver_after_ms: int = 0
    encryption_param: Text = None
    """In base64, if the client has encrypted the payload itself."""
    compression_type: Text = None
    """How it has compressed it before."""
    uncompressed_message_size: int | None = None


class Receipt(Struct, frozen=True, rename="camel"):
    """The answer to that."""

    result: str
    error_code: int = 0
    schema_version: int = 0
    message_id: str | UnsetType = UNSET
    error_msg: str | UnsetType = UNSET
    context: str | UnsetType = UNSET


def stored(message_id: str, context: str | None) -> Receipt:
    return Receipt("ok", message_id=message_id, context=UNSET if context is None else context)


def failed(failure: Failure, reason: str, context: str | None) -> Receipt:
    return Receipt(
        f"send-error:{int(failure)}",
        int(failure),
        error_msg=reason,
        context=UNSET if context is None else context,
    )


class EncryptionKey(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A key with which a payload is encrypted, itself encrypted."""

    key_value: Text = None
    metadata: dict[str, str] | None = None


class Encryption(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a consumer needs to decrypt a payload."""

    keys: dict[str, EncryptionKey]
    param: Text = None
    algorithm: Text = None
    compression_type: Text = None
    uncompressed_message_size: int | None = None
    batch_size: int | None = None


class Delivered(Struct, frozen=True, rename="camel"):
    """A message, as a consumer or a reader gets it."""

    message_id: str
    payload: str
    properties: dict[str, str]
    publish_time: str
    redelivery_count: int = 0
    event_time: str | UnsetType = UNSET
    key: str | UnsetType = UNSET
    encryption_context: Encryption | UnsetType = UNSET


class ConsumerCommand(Struct, frozen=True, rename="camel"):
    """What a consumer's client says; without a type it acknowledges."""

    type: Text = None
    message_id: Text = None
    permit_messages: int | None = None


class EndOfTopicAnswer(Struct, frozen=True, rename="camel"):
    """The answer to `isEndOfTopic`."""

    end_of_topic: bool


_published = msgspec.json.Decoder(Published, strict=False)
_command = msgspec.json.Decoder(ConsumerCommand, strict=False)
_keys = msgspec.json.Decoder(dict[str, EncryptionKey])
_any = msgspec.json.Decoder(Any)
_encoder = msgspec.json.Encoder()


def published(text: str) -> Published:
    """Raises `msgspec.MsgspecError`, as all of these."""
    return _read(_published, text)


def command(text: str) -> ConsumerCommand:
    return _read(_command, text)


def encryption_keys(text: bytes) -> dict[str, EncryptionKey]:
    return _decoded(_keys, text)


def _read(decoder: msgspec.json.Decoder[Document], text: str) -> Document:
    try:
        return _decoded(decoder, text)
    except msgspec.ValidationError:  # read again only then: most clients say texts
        value = _with_texts(_decoded(_any, text))
        found: Document = msgspec.convert(value, decoder.type, strict=False)
        return found


def _with_texts(value: Any) -> Any:
    """A document whose numbers and booleans are texts, from which both are read."""
    if isinstance(value, dict):
        return {key: _with_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_with_texts, value))
    if isinstance(value, bool | int | float):
        return encoded(value)
    return value


def _decoded(decoder: msgspec.json.Decoder[Document], text: str | bytes) -> Document:
    try:
        return decoder.decode(text)
    except RecursionError as error:
        raise msgspec.DecodeError("JSON is nested too deeply") from error


def encoded(document: Any) -> str:
    return _encoder.encode(document).decode()
