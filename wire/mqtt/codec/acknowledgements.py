"""Runs of acknowledgements that say nothing but success: parsed, and packed, with one call. Pure.

    type and flags | 2 | packet identifier

Other acknowledgements, with a reason or properties, are packets like others (`decode.py`,
`encode.py`). The functions have compiled twins.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from struct import pack
from typing import Final

from msgspec import Struct

from magnetar.core.native import quickest
from magnetar.wire.mqtt.codec.identifiers import as_range
from magnetar.wire.mqtt.codec.packets import PacketType

PACKET_BYTES: Final = 4
KINDS: Final = {
    PacketType.PUBACK << 4: PacketType.PUBACK,
    PacketType.PUBREC << 4: PacketType.PUBREC,
    PacketType.PUBREL << 4 | 2: PacketType.PUBREL,
    PacketType.PUBCOMP << 4: PacketType.PUBCOMP,
}
"""By the first byte."""
_LENGTH: Final = b"\2"


class Acknowledgements(Struct, frozen=True):
    """Consecutive ones of one kind."""

    kind: PacketType
    ids: Sequence[int]
    """See `identifiers.py`."""


def py_parse_acknowledgements(data: bytes, at: int) -> tuple[int, Acknowledgements | None]:
    """Parse a run at a first byte of `KINDS`; returns the offset after it, and the run. A packet
    that is none of them, or whose identifier is 0, ends it.
    """
    end = len(data) - (len(data) - at) % PACKET_BYTES
    firsts, lengths = data[at:end:PACKET_BYTES], data[at + 1 : end : PACKET_BYTES]
    count = min(
        len(firsts) - len(firsts.lstrip(firsts[:1])), len(lengths) - len(lengths.lstrip(_LENGTH))
    )
    words = array("H", data[at : at + PACKET_BYTES * count])
    if sys.byteorder == "little":
        words.byteswap()
    ids = words[1::2].tolist()
    if 0 in ids:
        ids = ids[: ids.index(0)]
    if not ids:
        return at, None
    return at + PACKET_BYTES * len(ids), Acknowledgements(KINDS[data[at]], as_range(ids))


def py_pack_acknowledgements(begin: int, ids: Sequence[int]) -> bytes:
    """Encode a run; `begin` is the two bytes before each identifier."""
    if len(ids) == 1:
        return pack(">HH", begin, ids[0])
    words = [begin] * (2 * len(ids))
    words[1::2] = ids
    return pack(f">{len(words)}H", *words)


HOME: Final = "magnetar.wire.mqtt.codec.compiled"
parse_acknowledgements = quickest(py_parse_acknowledgements, HOME)
pack_acknowledgements = quickest(py_pack_acknowledgements, HOME)
