"""Requests as clients send them, for tests."""

from __future__ import annotations

import struct

from wire.kafka.apis import APIS
from wire.kafka.codec.declare import Request
from wire.kafka.codec.encoding import encoder


def framed(request: Request, version: int, number: int = 1, client_id: bytes = b"me") -> bytes:
    """With its size and header; `number` is the correlation id."""
    flexible = APIS[request.KEY].is_flexible(version)
    body = b"".join(encoder(type(request), version, flexible)(request))
    head = struct.pack(">hhih", request.KEY, version, number, len(client_id)) + client_id
    frame = head + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(frame)) + frame
