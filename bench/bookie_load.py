"""Adds of version 2 to bookies over the network: rate, latency, and the CPU of the bookies for each
add; then batched reads of what was added, from one bookie. Ours, Apache's, or both in turn.

    python -m bench.bookie_load [--server both] [--size 1024] [--outstanding 1 32 512]
    python -m bench.bookie_load --bookies 3 --ack-quorum 2 [--server both]

With a peer all bookies are in one cluster, whose ZooKeeper is Apache's; alone ours are in none. CPU
is that of the bookies' processes together, user and system. The client shares the machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.bookies.adds import Address, Load, frames, read_all
from bench.bookies.processes import Bookie, OurBookie, cluster, started
from bench.drive import process
from bench.peers.bookkeeper import ApacheBookie

WARM_UP_ADDS = 100_000


class Adds(msgspec.Struct, frozen=True):
    """One round of adds."""

    per_second: float
    cpu_us: float
    p50_ms: float
    p99_ms: float


class Reads(msgspec.Struct, frozen=True):
    """One round of batched reads."""

    mb_per_second: float
    cpu_ms_mb: float


class Group:
    """The bookies of one maker, and what was measured of them."""

    def __init__(self, name: str, bookies: list[Bookie], start_seconds: list[float]) -> None:
        self.name = name
        self._bookies = bookies
        self.start_seconds = min(start_seconds)
        self.idle_mb = self._resident_mb()
        self._ledger_id = int(time.time() * 1000)
        self.adds: dict[int, list[Adds]] = {}
        self.reads: list[Reads] = []

    @property
    def addresses(self) -> list[Address]:
        return [bookie.address for bookie in self._bookies]

    def _cpu(self) -> float:
        return sum(process.cpu_seconds(bookie.pid) for bookie in self._bookies)

    def _resident_mb(self) -> float:
        return max(process.memory(bookie.pid).resident_mb for bookie in self._bookies)

    def add(self, outstanding: int, count: int, size: int, quorum: int) -> Adds:
        self._ledger_id += 1
        data = frames(self._ledger_id, size, count)
        load = Load(self.addresses, outstanding, quorum)
        before = self._cpu()
        seconds = load.run(data, count)
        spent = self._cpu() - before
        load.close()
        found = sorted(load.latencies)
        return Adds(
            count / seconds,
            1e6 * spent / count,
            1000 * found[len(found) // 2],
            1000 * found[len(found) * 99 // 100],
        )

    def read(self, count: int) -> Reads:
        """Read what was added last, from the first bookie."""
        before, begun = self._cpu(), time.perf_counter()
        megabytes = read_all(self.addresses[0], self._ledger_id, count) / 1e6
        seconds = time.perf_counter() - begun
        return Reads(megabytes / seconds, 1000 * (self._cpu() - before) / megabytes)

    def memory(self) -> str:
        return (
            f"{self.name}: ready after {self.start_seconds:.2f} s, resident memory of a bookie"
            f" {self.idle_mb:.0f} MB idle, {self._resident_mb():.0f} MB at the end"
        )


def measure(groups: list[Group], options: argparse.Namespace) -> None:
    """All servers in turn, round by round."""
    for group in groups:
        group.add(512, WARM_UP_ADDS, options.size, options.ack_quorum)
    for outstanding in options.outstanding:
        count = options.adds if outstanding > 1 else max(options.adds // 50, 1)
        for _ in range(options.rounds):
            for group in groups:
                found = group.add(outstanding, count, options.size, options.ack_quorum)
                group.adds.setdefault(outstanding, []).append(found)
                print(f"{group.name:16} {outstanding:5d} outstanding  {line(found)}", flush=True)
    if options.outstanding[-1] > 1:
        for _ in range(options.rounds):
            for group in groups:
                group.reads.append(group.read(options.adds))
                print(f"{group.name:16} batched reads      {read_line(group.reads[-1])}")


def line(adds: Adds) -> str:
    return (
        f"{adds.per_second / 1000:8.2f} k/s {adds.cpu_us:8.2f} us CPU an add"
        f"   p50 {adds.p50_ms:6.2f} ms p99 {adds.p99_ms:6.2f} ms"
    )


def read_line(reads: Reads) -> str:
    return f"{reads.mb_per_second:8.0f} MB/s {reads.cpu_ms_mb:8.2f} ms CPU a MB"


def median(rounds: list[Adds]) -> Adds:
    """Of each figure."""
    return Adds(
        **{
            name: statistics.median(getattr(each, name) for each in rounds)
            for name in Adds.__struct_fields__
        }
    )


def summary(groups: list[Group]) -> None:
    """Medians of all rounds, and how the first server's compare with the second's."""
    print("\nmedians")
    for outstanding in groups[0].adds:
        joined = [median(group.adds[outstanding]) for group in groups]
        for group, adds in zip(groups, joined, strict=True):
            print(f"{group.name:16} {outstanding:5d} outstanding  {line(adds)}")
        if len(joined) == 2:
            ours, theirs = joined
            print(
                f"{'ratio':16} {outstanding:5d} outstanding  rate"
                f" x{ours.per_second / theirs.per_second:.2f},"
                f" CPU x{ours.cpu_us / theirs.cpu_us:.2f}"
            )
    for group in groups:
        if group.reads:
            rate = statistics.median(each.mb_per_second for each in group.reads)
            spent = statistics.median(each.cpu_ms_mb for each in group.reads)
            print(f"{group.name:16} batched reads      {read_line(Reads(rate, spent))}")
    for group in groups:
        print(group.memory())


def main(options: argparse.Namespace) -> None:
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=options.directory)))
        uri = ""
        if options.server != "magnetar":
            uri = running.enter_context(cluster(folder / "zookeeper"))
        groups = []
        if options.server != "peer":
            ours = started(
                folder / "ours", options.bookies, lambda place: OurBookie(place, uri), running
            )
            groups.append(Group(OurBookie.name, *ours))
        if options.server != "magnetar":
            theirs = started(
                folder / "apache",
                options.bookies,
                lambda place: ApacheBookie(place, uri, options.heap),
                running,
            )
            groups.append(Group(ApacheBookie.name, *theirs))
        measure(groups, options)
        summary(groups)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=["magnetar", "peer", "both"], default="magnetar")
    parser.add_argument("--bookies", type=int, default=1)
    parser.add_argument("--ack-quorum", type=int, default=1)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--outstanding", type=int, nargs="+", default=[1, 32, 512])
    parser.add_argument("--adds", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--heap", choices=["Z", "S"], default="Z", help="the peer's")
    parser.add_argument("--directory", type=Path, default=None)
    main(parser.parse_args())
