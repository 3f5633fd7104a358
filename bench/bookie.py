"""CPU per entry of the storage tier, step by step: seal, whole append, checkpoint, cold read.

    python -m bench.bookie [--size 100] [--run 200] [--entries 400000] [--directory DIR]

CPU is that of all threads of this process (RocksDB's too), so figures hold beside other load;
rates are wall time. `loop pause` is the longest time the loop was not free during the checkpoints.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import trio

from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.bookie.format.entries import seal
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.core.ports.ledger_store import LedgerWriter


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Meter:
    """Prints the cost of a step."""

    def __init__(self, what: str, entries: int) -> None:
        self.what, self.entries = what, entries

    def __enter__(self) -> None:
        self.cpu, self.wall = cpu(), time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        spent, wall = cpu() - self.cpu, time.perf_counter() - self.wall
        print(
            f"{self.what:<28} {1e6 * spent / self.entries:6.2f} us CPU an entry"
            f" {self.entries / wall / 1000:8.0f} k/s"
        )


async def watch_loop(pauses: list[float]) -> None:
    """How long the loop is away, at worst."""
    before = time.perf_counter()
    while True:
        await trio.sleep(0.0005)
        now = time.perf_counter()
        pauses[0] = max(pauses[0], now - before - 0.0005)
        before = now


async def append(
    store: EmbeddedStore, writer: LedgerWriter, payloads: list[bytes], entries: int, window: int
) -> None:
    """Append runs with a bounded number in flight, as a link would."""
    sent = confirmed = 0
    wake = trio.Event()

    def done(error: BrokerError | None) -> None:
        nonlocal confirmed
        assert error is None, error
        confirmed += len(payloads)
        wake.set()

    while confirmed < entries:
        while sent < entries and sent - confirmed < window and not store.congested:
            writer.append(payloads, done)
            sent += len(payloads)
        store.flush_group()
        wake = trio.Event()
        with trio.move_on_after(0.001):  # congestion may end without a delivery
            await wake.wait()


async def main(arguments: argparse.Namespace, directory: Path) -> None:
    size, run, entries = arguments.size, arguments.run, arguments.entries
    payloads = [bytes([i % 256]) * size for i in range(run)]
    with Meter("seal", entries):
        for i in range(entries // run):
            seal(1, i * run, -1, 0, payloads)
    fatal: list[str] = []
    settings = BookieSettings(checkpoint_interval_seconds=3600, write_cache_bytes=1 << 30)
    async with (
        open_metadata(directory / "metadata.db") as metadata,
        open_embedded(directory / "apart", metadata, settings, on_fatal=fatal.append) as store,
    ):
        writer = await store.create({})
        with Meter("append, synced", entries):
            await append(store, writer, payloads, entries, 10_000)
        pauses = [0.0]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_loop, pauses)
            with Meter("checkpoint", entries):
                await store.checkpoint()
            nursery.cancel_scope.cancel()
        print(f"{'loop pause in checkpoint':<28} {1000 * pauses[0]:6.2f} ms")
        with Meter("cold read, in order", entries):
            first = 0
            while first < entries:
                first += len(await writer.read(first, entries - 1, 64 * 1024))
        statistics = store.statistics()
        print(f"journal groups {statistics.journal_groups}, direct {statistics.journal_direct}")
    settings = BookieSettings(bookie_id="whole")
    async with (
        open_metadata(directory / "metadata2.db") as metadata,
        open_embedded(directory / "whole", metadata, settings, on_fatal=fatal.append) as store,
    ):
        writer = await store.create({})
        pauses = [0.0]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_loop, pauses)
            with Meter("all, default settings", 2 * entries):
                await append(store, writer, payloads, 2 * entries, 10_000)
                await store.checkpoint()
            nursery.cancel_scope.cancel()
        print(f"{'loop pause':<28} {1000 * pauses[0]:6.2f} ms")
        with Meter("one in flight", 2000):
            await append(store, writer, payloads[:1], 2000, 1)
        print(f"{'checkpoints':<28} {store.statistics().checkpoints}")
    print(f"RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB at most")
    assert not fatal, fatal


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--run", type=int, default=200)
    parser.add_argument("--entries", type=int, default=400_000)
    parser.add_argument("--directory", type=Path, default=None)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as name:
        trio.run(main, chosen, Path(name))
