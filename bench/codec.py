"""CPU time of the code that runs for each message, in microseconds: the best of several rounds.

    .venv/bin/python -m bench.codec [PART-OF-A-NAME]                 (`look`: the check of batches)
    MAGNETAR_PURE=1 .venv/bin/python -m bench.codec                  (without compiled modules)

Frames are made by protobuf, as clients make them. The second figure is the goal, if there is one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from magnetar.bookie.format import entries
from magnetar.core import native
from magnetar.core.entry import header
from magnetar.core.entry.kafka import record_batch
from magnetar.core.entry.record import Record
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.wire.kafka.configs import rules
from magnetar.wire.kafka.partition import batches
from magnetar.wire.pulsar import events, hot
from magnetar.wire.pulsar.hot import contents
from magnetar.wire.pulsar.hot.tests.test_contents import packed
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.wire import PulsarWire, Recipient, WireOptions

ROUNDS: Final = 15
MESSAGES: Final = 1000
CONSUMER: Final = 7
LEDGER: Final = 54_321
FIRST_ENTRY: Final = 40_000
NOW_MS: Final = 1_700_000_000_000


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


Measure = tuple[Callable[[], object], int, float | None]
"""A function, the number of its messages, and the goal in microseconds per message."""
FIRST = 1_000_000
"""The first sequence id: three bytes long, as most are."""
SMALL = b"x" * 100


def sends(size: int, count: int = MESSAGES) -> bytes:
    return b"".join(peer.send(3, FIRST + i, b"x" * size) for i in range(count))


def send_measures() -> dict[str, Measure]:
    sizes = b"".join(peer.send(3, FIRST + i, SMALL[: i % 90]) for i in range(MESSAGES))
    two = b"".join(peer.send(3 + i % 2, FIRST + i, SMALL) for i in range(MESSAGES))
    lone = b"".join(peer.send_batch(3, FIRST + i, [SMALL]) for i in range(MESSAGES))
    one_by_one = [peer.send(3, FIRST + i, SMALL) for i in range(MESSAGES)]
    wire = open_wire()

    def feed_each() -> None:
        for data in one_by_one:
            wire.feed(data)
            wire.take_events()

    return {
        "SEND 100 B": (feeding(sends(100)), MESSAGES, 0.9),
        "SEND 100 B, checksums not verified": (feeding(sends(100), False), MESSAGES, None),
        "SEND 0-90 B": (feeding(sizes), MESSAGES, 0.9),
        "SEND 100 B, two producers in turn": (feeding(two), MESSAGES, None),
        "SEND 100 B, batches of one": (feeding(lone), MESSAGES, None),
        "SEND 100 B, one per feed": (feed_each, MESSAGES, None),
        "SEND 1 KiB": (feeding(sends(1024)), MESSAGES, None),
        "SEND 64 KiB": (feeding(sends(65536, 100)), 100, None),
    }


def sent_run() -> events.Sends:
    """A run of small messages, as the wire gives it."""
    wire = open_wire()
    wire.feed(sends(100))
    (run,) = wire.take_events()
    assert isinstance(run, events.Sends)
    return run


def packing(payloads: list[bytes], size: int, **options: object) -> Callable[[], object]:
    """Pack MESSAGEs, `size` of them a call."""
    out = open_wire()
    to = Recipient(CONSUMER, partition=0)
    parts = [
        Slice(LEDGER, FIRST_ENTRY + at, payloads[at : at + size], None)
        for at in range(0, len(payloads), size)
    ]

    def pack() -> None:
        for part in parts:
            out.messages(to, part, **options)  # type: ignore[arg-type]  # by name
        out.take_outgoing()

    return pack


def reply_measures() -> dict[str, Measure]:
    run = sent_run()
    head = b"\x0e\x02\x00\x00\x00\x0b\x08\x80\xd0\x95\xff\xbc\x31\x10\x85\xf1\x2d"
    headed = [head + tail for tail in run.payloads]

    def receipt_each() -> None:
        for index, sequence in enumerate(run.sequences):
            hot.receipts(3, [sequence], LEDGER, FIRST_ENTRY + index)

    def receipts() -> None:
        hot.receipts(3, run.sequences, LEDGER, FIRST_ENTRY)

    again = packing(headed, MESSAGES, redelivery_counts=[1] * MESSAGES)
    return {
        "SEND_RECEIPT": (receipts, MESSAGES, 0.3),
        "SEND_RECEIPT, one per call": (receipt_each, MESSAGES, None),
        "MESSAGE 100 B": (packing(run.payloads, MESSAGES), MESSAGES, 0.35),
        "MESSAGE 100 B, header cut off": (packing(headed, MESSAGES), MESSAGES, None),
        "MESSAGE 100 B, header cut off, 20 per call": (packing(headed, 20), MESSAGES, None),
        "MESSAGE 100 B, header cut off, one per call": (packing(headed, 1), MESSAGES, None),
        "MESSAGE 100 B, redelivered": (again, MESSAGES, None),
    }


def ack_measures() -> dict[str, Measure]:
    def ack(places: Iterable[int]) -> Callable[[], object]:
        return feeding(peer.ack(CONSUMER, *[(LEDGER, FIRST_ENTRY + i) for i in places]))

    n = range(MESSAGES)
    singles = b"".join(peer.ack(CONSUMER, (LEDGER, FIRST_ENTRY + i)) for i in n)
    flows = b"".join(peer.flow(CONSUMER, 500) for _ in n)
    return {
        "ACK of 1000 consecutive ids, per command": (ack(n), 1, 60.0),
        "ACK of 1000 ids, a gap each 20, per command": (ack(i + i // 20 for i in n), 1, None),
        "ACK of 1000 ids, every other, per command": (ack(2 * i for i in n), 1, None),
        "ACK of 1000 ids in disorder, per command": (ack(i * 617 % MESSAGES for i in n), 1, None),
        "ACK of one id": (feeding(singles), MESSAGES, 1.0),
        "FLOW": (feeding(flows), MESSAGES, None),
    }


def storage_measures() -> dict[str, Measure]:
    """Between wire and disk: the broker's header, the record around it, and back."""
    tails = sent_run().payloads
    large = [b"x" * 100_000] * 10
    heads = header.headers(MESSAGES, None, NOW_MS, FIRST)

    def seal(payloads: list[bytes]) -> entries.Run:
        return entries.seal(LEDGER, FIRST_ENTRY, -1, 0, payloads, heads[: len(payloads)])

    run = seal(tails)
    return {
        "header": (lambda: header.headers(MESSAGES, None, NOW_MS, FIRST), MESSAGES, None),
        "seal 100 B": (lambda: seal(tails), MESSAGES, None),
        "seal 100 KB": (lambda: seal(large), len(large), None),
        "check 100 B": (
            lambda: entries.checked_payloads(run, run.first, run.last, 1 << 30),
            MESSAGES,
            None,
        ),
    }


def looking_measures() -> dict[str, Measure]:
    """The check of a batch before it is stored."""
    words = [b"alpha", b"beta", b"gamma", b"delta", b"sensor", b"temperature", b"12.5"]
    values = [
        b" ".join(words[i * j * 7 % 11 % 7] for j in range(20))[:100] for i in range(MESSAGES)
    ]
    records = [Record(place, NOW_MS, None, value, ()) for place, value in enumerate(values)]
    plain = record_batch.batch_of(records, 0, MESSAGES)
    policies = effective(Effective(), NamespacePolicies(), TopicPolicies())
    taken = rules(policies, {})
    found: dict[str, Measure] = {}

    def look(name: str, run: Callable[[], object]) -> None:
        found[f"look into 1000 x 100 B, {name}"] = (run, MESSAGES, None)

    look("Kafka, header alone", lambda: batches.sound(plain))
    for number, name in enumerate(["plain", "gzip", "snappy", "lz4", "zstd"]):
        made = record_batch.recompressed(plain, number) if number else plain
        look(f"Kafka, {name}", partial(batches.checked, made, taken, NOW_MS))
    payload = peer.batch(values)
    for number, name in enumerate(["plain", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]):
        look(f"Pulsar, {name}", partial(contents.malformed, [packed(payload, MESSAGES, number)]))
    return found


def measures() -> dict[str, Measure]:
    return {
        **send_measures(),
        **reply_measures(),
        **ack_measures(),
        **storage_measures(),
        **looking_measures(),
    }


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"codec: {native.described()}")
    for name, (run, divisor, goal) in measures().items():
        if wanted in name:
            run()
            print(f"{name:48}{best(run, divisor):9.3f}" + (f"{goal:9.2f}" if goal else ""))


if __name__ == "__main__":
    main()
