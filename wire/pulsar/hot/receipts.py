"""Hand-written encoding of SEND_RECEIPT, for a run of stored messages.

Invariant: the bytes of sequence ids are echoed (`sends.echo_of`), and never decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Final

from magnetar.core.kernel.varints import ONE_BYTE, stretches, varint
from magnetar.wire.pulsar.frames import SIZES

UNSIGNED: Final = (1 << 64) - 1


def receipts(
    producer_id: int, sequences: Sequence[bytes], ledger_id: int, first_entry_id: int
) -> bytes:
    """Receipts for messages that are stored consecutively."""
    if len(sequences) == 1:
        return _receipt(producer_id, sequences[0], ledger_id, varint(first_entry_id))
    pieces: list[bytes] = []
    at = 0
    for firsts, entry_rest in stretches(first_entry_id, len(sequences)):
        echoes = sequences[at : at + len(firsts)]
        at += len(firsts)
        sizes = set(map(len, echoes))
        if len(sizes) == 1:
            head, middle = _parts(producer_id, ledger_id, sizes.pop(), len(entry_rest) + 1)
            pieces += chain.from_iterable(
                zip(repeat(head), echoes, repeat(middle), firsts, repeat(entry_rest))
            )
        else:
            pieces += [
                _receipt(producer_id, echo, ledger_id, first + entry_rest)
                for echo, first in zip(echoes, firsts, strict=True)
            ]
    return b"".join(pieces)


def receipts_without_id(producer_id: int, sequences: Iterable[bytes]) -> bytes:
    """Receipts for messages that need not be stored: duplicates, dropped ones."""
    nowhere = varint(UNSIGNED)
    return b"".join([_receipt(producer_id, echo, UNSIGNED, nowhere) for echo in sequences])


def _receipt(producer_id: int, echo: bytes, ledger_id: int, entry: bytes) -> bytes:
    head, middle = _parts(producer_id, ledger_id, len(echo), len(entry))
    return head + echo + middle + entry


@lru_cache(maxsize=1024)
def _parts(
    producer_id: int, ledger_id: int, echo_bytes: int, entry_bytes: int
) -> tuple[bytes, bytes]:
    """The bytes before the echoed sequence ids, and those between them and the entry id.

    The longest receipt has less than 128 bytes, so each inner size is one byte.
    """
    producer = b"\x08" + varint(producer_id) + b"\x10"
    ledger = b"\x08" + varint(ledger_id) + b"\x10"
    id_bytes = len(ledger) + entry_bytes
    inner = len(producer) + echo_bytes + 2 + id_bytes
    head = SIZES.pack(inner + 8, inner + 4) + b"\x08\x07\x3a" + ONE_BYTE[inner] + producer
    return head, b"\x1a" + ONE_BYTE[id_bytes] + ledger
