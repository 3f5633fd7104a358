"""Converts headers to properties and back. Pure.

Properties have text for names and values, and each name once. Kafka's headers have bytes or null as
values, are ordered, and may repeat a name. Headers that fit become plain properties. If one does
not fit, the property `kafka.headers` has all of them in JSON: a list of [name, value], each value
in base64 or null. If a message has that property, it alone determines the headers.

Invariant: headers with text names are unchanged by the conversion to properties and back.
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
"""Decodes the list; bytes are base64 in JSON."""

Property = tuple[bytes, bytes]


def properties_of(headers: Sequence[Header]) -> Sequence[Property]:
    """The properties for these headers."""
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
    """The headers for these properties."""
    for name, value in properties:
        if name == ALL:
            try:
                return [(each.encode(), content) for each, content in _decode(value)]
            except (msgspec.MsgspecError, UnicodeError):
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
