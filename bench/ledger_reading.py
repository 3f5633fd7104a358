"""Sequential reads of a closed ledger by the reader without a loop (`bookie/reading/`), from one
bookie or several: rate, and the CPU of the reader and of the bookies for it.

    python -m bench.ledger_reading [--size 1024] [--entries 200000] [--bookies 1] [--rounds 3]

The bookies run on this machine too. What is read was just written, so that it is in their memory or
in the page cache. "MB a core" is what one core would read if it did nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.bookie_load import Load, cpu, frames
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.read_handle import open_ledger
from magnetar.bookie.reading.sources import PlannedLedgers
from magnetar.core.native import described

LEDGER = 7


def start(folder: Path, running: ExitStack) -> tuple[str, int]:
    """Start a bookie; its address and its process."""
    ready = folder / "ready"
    program = Path(sys.executable).with_name("magnetar")
    words = ("--data-dir", str(folder / "data"), "--port", "0", "--bookie-id", "bench")
    more = ("--ready-file", str(ready), "--log-level", "warning")
    process = running.enter_context(subprocess.Popen([program, "bookie", *words, *more]))
    running.callback(process.terminate)
    while not ready.exists():
        assert process.poll() is None
    return json.loads(ready.read_text())["bookie"], process.pid


def written(bookies: list[str], arguments: argparse.Namespace) -> PlannedLedgers:
    """A closed ledger, all of which every bookie has."""
    data = frames(LEDGER, arguments.size, arguments.entries)
    for bookie in bookies:
        host, _, port = bookie.rpartition(":")
        load = Load((host, int(port)), 512)
        load.run(data, arguments.entries)
        load.close()
    count = len(bookies)
    metadata = ledger_metadata.fresh(tuple(bookies), (count, count), {}, 0, 1)
    metadata.state = ledger_metadata.CLOSED
    metadata.lastEntryId = arguments.entries - 1
    metadata.length = arguments.entries * arguments.size
    return PlannedLedgers({LEDGER: ledger_metadata.encode(metadata)})


def read(source: PlannedLedgers, pids: list[int], options: ReadOptions) -> str:
    """Read all of it once."""
    before, mine, started = sum(map(cpu, pids)), time.process_time(), time.perf_counter()
    with open_ledger(LEDGER, source, options) as ledger:
        size = sum(sum(map(len, run.payloads)) for run in ledger.read())
    seconds, mine = time.perf_counter() - started, time.process_time() - mine
    theirs, megabytes = sum(map(cpu, pids)) - before, size / 1e6
    return (
        f"{megabytes / seconds:7.0f} MB/s   reader {megabytes / mine:6.0f} MB a core"
        f"   bookies {megabytes / max(theirs, 0.01):6.0f} MB a core"
    )


def main(arguments: argparse.Namespace) -> None:
    print(f"codec {described()}")
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(dir=arguments.directory)))
        started = []
        for place in range(arguments.bookies):
            home = folder / str(place)
            home.mkdir()
            started.append(start(home, running))
        source = written([bookie for bookie, _ in started], arguments)
        pids = [pid for _, pid in started]
        for name, options in (
            ("batches", ReadOptions()),
            ("single reads", ReadOptions(batches=False)),
        ):
            for _ in range(arguments.rounds):
                print(f"{name:12}  {read(source, pids, options)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--bookies", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    main(parser.parse_args())
