"""Headers as properties and back. Pure.

Properties have text for names and values, and each name once. Headers (Kafka's) have bytes, may be
absent, and come in an order, twice if they like. What properties can say they say plainly. Where
they cannot, one more property, `kafka.headers`, has all of it in JSON: a list of [name, value],
each value in base64 or null. Where a message has that property, its headers are what it says.

Invariant: headers that become properties and then headers again are what they were, as long as
their names are text.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Final

import msgspec

from magnetar.core.entry.record import Header

ALL: Final = b"kafka.headers"
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(list[tuple[str, bytes | None]]).decode
"""Bytes are base64 in JSON."""

Property = tuple[bytes, bytes]


def properties_of(headers: Sequence[Header]) -> Sequence[Property]:
    """What users of properties see of headers."""
    plain: dict[bytes, bytes] = {}
    exact = True
    for name, value in headers:
        if name in plain or value is None or not (_is_text(name) and _is_text(value)):
            exact = False
        if value is not None and _is_text(name):
            plain[name] = value if _is_text(value) else binascii.b2a_base64(value, newline=False)
    if not exact:
        plain[ALL] = _encode([(name.decode(errors="replace"), value) for name, value in headers])
    return list(plain.items())


def headers_of(properties: Sequence[Property]) -> Sequence[Header]:
    """What users of headers see of properties."""
    for name, value in properties:
        if name == ALL:
            try:
                return [(each.encode(), content) for each, content in _decode(value)]
            except msgspec.MsgspecError:
                break  # another application's property of that name
    return properties


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
