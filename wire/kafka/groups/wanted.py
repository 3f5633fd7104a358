"""Which topics a member of a classic group wants: what consumers hide in their bytes. Pure.

Apart from `protocols`, so that nobody has to import the messages who has no use for them.
"""

from __future__ import annotations

import struct
from typing import Final

from core.errors import WireError
from wire.kafka.codec.decoding import decoder
from wire.kafka.groups.member import Member
from wire.kafka.messages.embedded import ConsumerSubscription

CONSUMER: Final = "consumer"
"""The protocol type under which topics are wanted."""
METADATA_BYTES_MAX: Final = 256 * 1024
"""More is not taken apart: it has many times its size in memory then."""
_VERSION = struct.Struct(">h")


def topics_wanted(member: Member) -> set[str] | None:
    """The topics that a consumer subscribes to; None if it does not say so in words we know."""
    if member.request.protocol_type != CONSUMER:
        return None
    found: set[str] = set()
    for _, metadata in member.request.protocols:
        subscription = _decoded(metadata)
        if subscription is None:
            return None
        found.update(subscription.topics)
    return found


def _decoded(metadata: bytes) -> ConsumerSubscription | None:
    if not _VERSION.size <= len(metadata) <= METADATA_BYTES_MAX:
        return None
    low, high = ConsumerSubscription.VERSIONS
    (version,) = _VERSION.unpack_from(metadata)
    if version < low:
        return None
    decode = decoder(ConsumerSubscription, min(version, high), False)
    try:  # a newer one begins as those that we know
        found, _ = decode(metadata, _VERSION.size)
    except WireError:
        return None
    assert isinstance(found, ConsumerSubscription)
    return found
