"""CPU per message of the Pulsar codec, in microseconds: best of several rounds, one process.

    .venv/bin/python -m bench.codec [ONLY-NAMES-WITH-THIS]

Frames are made by protobuf, as clients make them. The second figure is the goal, if there is one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from wire.pulsar import hot
from wire.pulsar.tests import peer
from wire.pulsar.wire import PulsarWire, WireOptions

ROUNDS: Final = 15
MESSAGES: Final = 1000
CONSUMER: Final = 7
LEDGER: Final = 54_321
FIRST_ENTRY: Final = 40_000


def best(run: Callable[[], object], divisor: int) -> float:
    """Microseconds per item of the fastest round."""
    fastest = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - begin)
    return fastest / divisor * 1e6


def open_wire(verify: bool = True) -> PulsarWire:
    wire = PulsarWire(WireOptions(verify_checksums=verify))
    wire.feed(peer.connect())
    wire.take_events()
    return wire


def feeding(data: bytes, verify: bool = True) -> Callable[[], object]:
    wire = open_wire(verify)

    def run() -> None:
        assert wire.feed(data) == len(data)
        wire.take_events()

    return run


def measures() -> dict[str, tuple[Callable[[], object], int, float | None]]:
    small, kilo, large = b"x" * 100, b"x" * 1024, b"x" * 65536
    first = 1_000_000
    sends = b"".join(peer.send(3, first + i, small) for i in range(MESSAGES))
    sizes = b"".join(peer.send(3, first + i, small[: i % 90]) for i in range(MESSAGES))
    two = b"".join(peer.send(3 + i % 2, first + i, small) for i in range(MESSAGES))
    lone = b"".join(peer.send_batch(3, first + i, [small]) for i in range(MESSAGES))
    one_by_one = [peer.send(3, first + i, small) for i in range(MESSAGES)]
    wire = open_wire()
    wire.feed(sends)
    (run,) = wire.take_events()
    ids = [(LEDGER, FIRST_ENTRY + i) for i in range(MESSAGES)]
    every_other = [(LEDGER, FIRST_ENTRY + 2 * i) for i in range(MESSAGES)]
    gaps = [(LEDGER, FIRST_ENTRY + i + i // 20) for i in range(MESSAGES)]
    shuffled = [(LEDGER, FIRST_ENTRY + (i * 617) % MESSAGES) for i in range(MESSAGES)]
    headed = [
        b"\x0e\x02\x00\x00\x00\x0b\x08\x80\xd0\x95\xff\xbc\x31\x10\x85\xf1\x2d" + tail
        for tail in run.payloads
    ]
    out = open_wire()

    def pack_messages(payloads: list[bytes], **options: object) -> Callable[[], object]:
        def pack() -> None:
            out.messages(CONSUMER, LEDGER, FIRST_ENTRY, payloads, partition=0, **options)
            out.take_outgoing()

        return pack

    def feed_each() -> None:
        for data in one_by_one:
            wire.feed(data)
            wire.take_events()

    def pack_some(size: int) -> Callable[[], object]:
        def pack() -> None:
            for at in range(0, MESSAGES, size):
                some = headed[at : at + size]
                out.messages(CONSUMER, LEDGER, FIRST_ENTRY + at, some, partition=0)
            out.take_outgoing()

        return pack

    def receipt_each() -> None:
        for index, sequence in enumerate(run.sequences):
            hot.receipts(3, [sequence], LEDGER, FIRST_ENTRY + index)

    singles = b"".join(peer.ack(CONSUMER, each) for each in ids)
    return {
        "SEND 100 B": (feeding(sends), MESSAGES, 0.9),
        "SEND 100 B, checksums not verified": (feeding(sends, False), MESSAGES, None),
        "SEND 0-90 B": (feeding(sizes), MESSAGES, 0.9),
        "SEND 100 B, two producers in turn": (feeding(two), MESSAGES, None),
        "SEND 100 B, batches of one": (feeding(lone), MESSAGES, None),
        "SEND 100 B, one per feed": (feed_each, MESSAGES, None),
        "SEND 1 KiB": (
            feeding(b"".join(peer.send(3, first + i, kilo) for i in range(MESSAGES))),
            MESSAGES,
            None,
        ),
        "SEND 64 KiB": (
            feeding(b"".join(peer.send(3, first + i, large) for i in range(100))),
            100,
            None,
        ),
        "SEND_RECEIPT": (
            lambda: hot.receipts(3, run.sequences, LEDGER, FIRST_ENTRY),
            MESSAGES,
            0.3,
        ),
        "SEND_RECEIPT, one per call": (receipt_each, MESSAGES, None),
        "MESSAGE 100 B": (pack_messages(run.payloads), MESSAGES, 0.35),
        "MESSAGE 100 B, header cut off": (pack_messages(headed), MESSAGES, None),
        "MESSAGE 100 B, header cut off, 20 per call": (pack_some(20), MESSAGES, None),
        "MESSAGE 100 B, header cut off, one per call": (pack_some(1), MESSAGES, None),
        "MESSAGE 100 B, redelivered": (
            pack_messages(headed, redelivery_counts=[1] * MESSAGES),
            MESSAGES,
            None,
        ),
        "ACK of 1000 consecutive ids, per command": (feeding(peer.ack(CONSUMER, *ids)), 1, 60.0),
        "ACK of 1000 ids, a gap each 20, per command": (
            feeding(peer.ack(CONSUMER, *gaps)),
            1,
            None,
        ),
        "ACK of 1000 ids, every other, per command": (
            feeding(peer.ack(CONSUMER, *every_other)),
            1,
            None,
        ),
        "ACK of 1000 ids in disorder, per command": (
            feeding(peer.ack(CONSUMER, *shuffled)),
            1,
            None,
        ),
        "ACK of one id": (feeding(singles), MESSAGES, 1.0),
        "FLOW": (
            feeding(b"".join(peer.flow(CONSUMER, 500) for _ in range(MESSAGES))),
            MESSAGES,
            None,
        ),
    }


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, (run, divisor, goal) in measures().items():
        if wanted in name:
            run()
            print(f"{name:48}{best(run, divisor):9.3f}" + (f"{goal:9.2f}" if goal else ""))


if __name__ == "__main__":
    main()
