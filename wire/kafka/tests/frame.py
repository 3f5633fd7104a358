"""Requests as clients send them, for tests."""

from __future__ import annotations

import struct

from magnetar.core.link.large_frame import new_large_frame
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import Request
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.wire import KafkaWire


def framed(request: Request, version: int, number: int = 1, client_id: bytes = b"me") -> bytes:
    """With its size and header; `number` is the correlation id."""
    flexible = APIS[request.KEY].is_flexible(version)
    body = b"".join(encoder(type(request), version, flexible)(request))
    head = struct.pack(">hhih", request.KEY, version, number, len(client_id)) + client_id
    frame = head + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(frame)) + frame


def feed_large(wire: KafkaWire, frame: bytes, come: int) -> tuple[int, int]:
    """Feed a frame as the link does when it is large and so much of it, but not all, comes first;
    what the wire said of its body.
    """
    begin = frame[: min(come, len(frame) - 1)]
    assert wire.feed(begin) == 0
    words, before = wire.body_in(begin)
    assert wire.frame_bytes_wanted == len(frame) - words
    wire.feed_large(new_large_frame(frame, len(frame) - words, words, before))
    return words, before
