"""Sequential reads of a closed ledger by the reader without a loop (`bookie/reading/`), from one
bookie or several: rate, and the CPU of the reader and of the bookies for it.

    python -m bench.ledger_reading [--size 1024] [--entries 200000] [--bookies 1] [--rounds 3]
    python -m bench.ledger_reading --server both      from Apache's bookies, too

The bookies run on this machine too. What is read was just written, so that it is in their memory or
in the page cache. "MB a core" is what one core would read if it did nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.bookies.adds import Address, Load, frames
from bench.bookies.processes import Bookie, OurBookie, cluster, started
from bench.drive.process import cpu_seconds
from bench.peers.bookkeeper import ApacheBookie
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import open_ledger
from magnetar.bookie.reading.sources import PlannedLedgers
from magnetar.core.native import described

LEDGER = 7


def written(bookies: list[Address], arguments: argparse.Namespace) -> PlannedLedgers:
    """A closed ledger, all of which every bookie has."""
    data = frames(LEDGER, arguments.size, arguments.entries)
    count = len(bookies)
    load = Load(bookies, 512, count)
    load.run(data, arguments.entries)
    load.close()
    ids = tuple(f"{host}:{port}" for host, port in bookies)
    metadata = ledger_metadata.fresh(ids, (count, count), {}, 0, 1)
    metadata.state = ledger_metadata.CLOSED
    metadata.lastEntryId = arguments.entries - 1
    metadata.length = arguments.entries * arguments.size
    return PlannedLedgers({LEDGER: ledger_metadata.encode(metadata)})


def read(source: PlannedLedgers, pids: list[int], options: ReadOptions) -> str:
    """Read all of it once."""
    before, mine, begun = sum(map(cpu_seconds, pids)), time.process_time(), time.perf_counter()
    with open_ledger(LEDGER, source, options) as ledger:
        size = sum(sum(map(len, run.payloads)) for run in ledger.read())
    seconds, mine = time.perf_counter() - begun, time.process_time() - mine
    theirs, megabytes = sum(map(cpu_seconds, pids)) - before, size / 1e6
    return (
        f"{megabytes / seconds:7.0f} MB/s   reader {megabytes / mine:6.0f} MB a core"
        f"   bookies {megabytes / max(theirs, 0.01):6.0f} MB a core"
    )


def measure(bookies: list[Bookie], arguments: argparse.Namespace) -> None:
    source = written([bookie.address for bookie in bookies], arguments)
    pids = [bookie.pid for bookie in bookies]
    for name, options in (("batches", ReadOptions()), ("single reads", ReadOptions(batches=False))):
        for _ in range(arguments.rounds):
            print(f"{bookies[0].name:16} {name:12}  {read(source, pids, options)}", flush=True)


def main(arguments: argparse.Namespace) -> None:
    print(f"codec {described()}")
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=arguments.directory)))
        ours, _ = started(folder / "ours", arguments.bookies, OurBookie, running)
        measure(ours, arguments)
        if arguments.server == "both":
            uri = running.enter_context(cluster(folder / "zookeeper"))
            theirs, _ = started(
                folder / "apache",
                arguments.bookies,
                lambda place: ApacheBookie(place, uri),
                running,
            )
            measure(theirs, arguments)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=["magnetar", "both"], default="magnetar")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--bookies", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    main(parser.parse_args())
