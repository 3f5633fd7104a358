"""What the generators put into every message; `loadkit/load.h` says the same in C."""

import struct
from typing import NamedTuple

LAYOUT = struct.Struct("=QQII")
RUN = 1


class Head(NamedTuple):
    """How a payload begins."""

    sequence: int
    intended_ns: int
    producer: int
    run: int


def head_of(payload: bytes) -> Head:
    return Head(*LAYOUT.unpack_from(payload))


def payload(sequence: int, producer: int = 0) -> bytes:
    return LAYOUT.pack(sequence, 0, producer, RUN)
