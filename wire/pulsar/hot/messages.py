"""Hand-written encoding of MESSAGE: consecutive entries for one consumer.

Invariant: a consumer receives the producer's bytes unchanged, behind the header of MESSAGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Final, NamedTuple

from magnetar.core.kernel.varints import stretches, varint
from magnetar.wire.pulsar.frames import BROKER_PART, CHECKSUM_PART, SIZE, tail_to_store

UNSIGNED: Final = (1 << 64) - 1
COPY_BYTES_MAX: Final = 2048
"""Smaller payloads are joined with their neighbours; a larger one is a piece of its own."""


def without_broker_part(payloads: Sequence[bytes]) -> Sequence[bytes]:
    """Stored entries without broker metadata: from the checksum part on.

    Entries of other brokers may lack the checksum, which is added, because Go's client needs it.
    """
    if len(payloads) == 1:
        return [stored_tail(payloads[0])]
    if all(map(bytes.startswith, payloads, repeat(CHECKSUM_PART))):
        return payloads
    first = payloads[0][:6]
    if first.startswith(BROKER_PART) and all(map(bytes.startswith, payloads, repeat(first))):
        at = 6 + int(SIZE.unpack_from(first, 2)[0])
        payloads = [payload[at:] for payload in payloads]
        if all(map(bytes.startswith, payloads, repeat(CHECKSUM_PART))):
            return payloads
    return [stored_tail(payload) for payload in payloads]


def stored_tail(payload: bytes) -> bytes:
    """One stored entry from its checksum part on."""
    if payload.startswith(BROKER_PART):
        payload = payload[6 + SIZE.unpack_from(payload, 2)[0] :]
    return payload if payload.startswith(CHECKSUM_PART) else tail_to_store(payload)


class Suffix(NamedTuple):
    """The bytes after the entry id in a MESSAGE: in its message id, and in the command."""

    in_id: bytes
    in_command: bytes


@lru_cache(maxsize=1024)
def suffix_of(
    partition: int = -1,
    redelivery_count: int = 0,
    ack_mask: int | None = None,
    consumer_epoch: int | None = None,
) -> Suffix:
    """The fields of a MESSAGE beside its ids; those at their defaults are left out."""
    in_id = b"\x18" + varint(partition) if partition >= 0 else b""
    in_command = b"\x18" + varint(redelivery_count) if redelivery_count else b""
    if ack_mask is not None:
        for _ in range(max(1, (ack_mask.bit_length() + 63) // 64)):
            in_command += b"\x20" + varint(ack_mask & UNSIGNED)
            ack_mask >>= 64
    if consumer_epoch is not None:
        in_command += b"\x28" + varint(consumer_epoch & UNSIGNED)
    return Suffix(in_id, in_command)


def messages(
    consumer_id: int,
    ledger_id: int,
    first_entry_id: int,
    payloads: Sequence[bytes],
    suffixes: Suffix | Sequence[Suffix],
) -> list[bytes]:
    """MESSAGE frames for consecutive entries, in order.

    One suffix for all of them, or one for each.
    """
    if len(payloads) == 1:
        suffix = suffixes if isinstance(suffixes, Suffix) else suffixes[0]
        return _one_message(consumer_id, ledger_id, first_entry_id, payloads[0], suffix)
    if not isinstance(suffixes, Suffix) or max(map(len, payloads)) > COPY_BYTES_MAX:
        return _messages_one_by_one(consumer_id, ledger_id, first_entry_id, payloads, suffixes)
    parts: list[bytes] = []
    at = 0
    for firsts, entry_rest in stretches(first_entry_id, len(payloads)):
        some = payloads[at : at + len(firsts)]
        at += len(firsts)
        head, rest = _message_parts(consumer_id, ledger_id, entry_rest, suffixes)
        sizes = map((len(head) + 1 + len(rest)).__add__, map(len, some))
        parts += chain.from_iterable(
            zip(map(SIZE.pack, sizes), repeat(head), firsts, repeat(rest), some)
        )
    return [b"".join(parts)]


def _one_message(
    consumer_id: int, ledger_id: int, entry_id: int, payload: bytes, suffix: Suffix
) -> list[bytes]:
    entry = varint(entry_id)
    head, rest = _message_parts(consumer_id, ledger_id, entry[1:], suffix)
    command = SIZE.pack(len(head) + 1 + len(rest) + len(payload)) + head + entry[:1] + rest
    return [command + payload] if len(payload) <= COPY_BYTES_MAX else [command, payload]


def _messages_one_by_one(
    consumer_id: int,
    ledger_id: int,
    first_entry_id: int,
    payloads: Sequence[bytes],
    suffixes: Suffix | Sequence[Suffix],
) -> list[bytes]:
    """As `messages`, for frames that differ in more than the entry id, or are large."""
    each = repeat(suffixes) if isinstance(suffixes, Suffix) else suffixes
    firsts = chain.from_iterable(
        zip(firsts, repeat(rest)) for firsts, rest in stretches(first_entry_id, len(payloads))
    )
    out: list[bytes] = []
    small: list[bytes] = []
    for payload, suffix, (first, entry_rest) in zip(payloads, each, firsts):  # noqa: B905 -- repeat() has no end
        head, rest = _message_parts(consumer_id, ledger_id, entry_rest, suffix)
        small += (SIZE.pack(len(head) + 1 + len(rest) + len(payload)), head, first, rest)
        if len(payload) > COPY_BYTES_MAX:
            out += (b"".join(small), payload)
            small.clear()
        else:
            small.append(payload)
    if small:
        out.append(b"".join(small))
    return out


@lru_cache(maxsize=1024)
def _message_parts(
    consumer_id: int, ledger_id: int, entry_rest: bytes, suffix: Suffix
) -> tuple[bytes, bytes]:
    """The bytes between the frame's size and the entry id's first byte, and those after it."""
    ledger = b"\x08" + varint(ledger_id) + b"\x10"
    in_id, in_command = suffix
    id_bytes = len(ledger) + 1 + len(entry_rest) + len(in_id)
    consumer = b"\x08" + varint(consumer_id) + b"\x12" + varint(id_bytes)
    inner = varint(len(consumer) + id_bytes + len(in_command))
    command = b"\x08\x09\x4a" + inner + consumer + ledger
    command_bytes = len(command) + 1 + len(entry_rest) + len(in_id) + len(in_command)
    return SIZE.pack(command_bytes) + command, entry_rest + in_id + in_command
