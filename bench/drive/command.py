"""The command line of the benchmarks: which cases, on which servers, in how many rounds.

Servers alternate within a round, and only one is loaded at a time.
"""

import argparse
import contextlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.bookies.gateway import Gateway
from bench.drive import generator, measure, table
from bench.drive.cases import Case, Kind, Protocol
from bench.drive.catalogue import CASES, UnknownCaseError, chosen
from bench.drive.generator import GeneratorError
from bench.drive.measure import Measure, Plan, Sample
from bench.drive.memory import measure_memory
from bench.drive.server import Magnetar, NotReadyError, Server
from bench.peers.kafka import Kafka
from bench.peers.mosquitto import Mosquitto
from bench.peers.pulsar import Pulsar

OUT = Path(__file__).resolve().parents[1] / "out"
PEERS = {Protocol.PULSAR: Pulsar, Protocol.KAFKA: Kafka, Protocol.MQTT: Mosquitto}
OWN_SERVER: dict[Kind, Measure] = {
    Kind.BACKLOG: measure.measure_backlog,
    Kind.STARTUP: measure.measure_startup,
    Kind.IDLE: measure.measure_idle,
    Kind.MEMORY: measure_memory,
}


class Report(msgspec.Struct, frozen=True):
    """The result in bench/out: the samples and their machine."""

    machine: dict[str, str]
    samples: list[Sample]


def parser() -> argparse.ArgumentParser:
    parse = argparse.ArgumentParser(
        prog="bench/run.py", description="Measure the server, alone or beside a peer."
    )
    parse.add_argument(
        "--case",
        nargs="+",
        default=["publish", "both"],
        metavar="NAME",
        help="or `pulsar`, `kafka`, `mqtt`, `goals`, `all`; see --list",
    )
    parse.add_argument(
        "--server",
        choices=["magnetar", "peer", "both", "gateway"],
        default="magnetar",
        help="the peer is Apache Pulsar, Apache Kafka or mosquitto, as the case is; `gateway` is "
        "`magnetar gateway` on three bookies, beside `magnetar standalone`",
    )
    parse.add_argument(
        "--rounds", type=int, default=3, help="of each case; servers alternate within a round"
    )
    parse.add_argument("--seconds", type=float, default=4.0, help="measured seconds of a load")
    parse.add_argument(
        "--warmup", type=float, default=3.0, help="seconds of the same load before each measurement"
    )
    parse.add_argument(
        "--heap",
        choices=["Z", "S"],
        default="Z",
        help="the peer's: what it ships with, or 256 MB and serial",
    )
    parse.add_argument("--no-sync", action="store_true", help="neither server syncs its journal")
    parse.add_argument("--full", action="store_true", help="the backlogs at their full size")
    parse.add_argument("--name", default="latest", help="of the files in bench/out")
    parse.add_argument(
        "--scratch",
        type=Path,
        default=None,
        help="where data directories go (default: a temporary one)",
    )
    parse.add_argument("--list", action="store_true", help="print the cases and leave")
    return parse


def machine() -> dict[str, str]:
    return {
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "when": time.strftime("%Y-%m-%d %H:%M"),
    }


class Run:
    """One invocation: its options, its scratch directory, its samples so far."""

    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory
        self.plan = Plan(seconds=options.seconds, warmup_seconds=options.warmup, full=options.full)
        self.samples: list[Sample] = []

    def servers(self, label: str, protocol: Protocol) -> list[Server]:
        """Fresh, stopped servers, ours first, each with a data directory of its own."""
        synced = not self.options.no_sync
        made: list[Server] = []
        if self.options.server != "peer":
            made.append(Magnetar(self.place(f"magnetar-{protocol.value}-{label}"), synced))
        if self.options.server == "gateway":
            made.append(Gateway(self.place(f"gateway-{protocol.value}-{label}")))
        elif self.options.server != "magnetar":
            place = self.place(f"{protocol.value}-{label}")
            made.append(PEERS[protocol](place, synced, self.options.heap))
        for server in made:
            server.prepare()
        return made

    def place(self, name: str) -> Path:
        directory = self.directory / name
        directory.mkdir(parents=True)
        return directory

    def say(self, words: str) -> None:
        print(words, flush=True)

    def keep(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.say(table.text(table.join([sample])))
        for name, count in sample.trouble.items():
            self.say(f"{sample.case} on {sample.server} FAILED: {name} {count}")

    @contextlib.contextmanager
    def running(self, protocol: Protocol) -> Iterator[list[Server]]:
        """All servers up and warm, for the cases that only load them."""
        servers = self.servers("load", protocol)
        with contextlib.ExitStack() as stack:
            for server in servers:
                stack.callback(server.close)
                stack.callback(server.stop)
                took = server.start()
                self.say(f"{server.name}: ready after {took:.2f} s, warming up")
                measure.warm_up(server, protocol)
            yield servers

    def load(self, protocol: Protocol, cases: Sequence[Case]) -> None:
        with self.running(protocol) as servers:
            for case in cases:
                for number in range(self.options.rounds):
                    for server in servers:
                        self.keep(measure.measure_load(case, server, number, self.plan))

    def alone(self, case: Case) -> None:
        """A case that starts and stops servers itself; every round gets fresh ones."""
        for number in range(self.options.rounds):
            for server in self.servers(f"{case.name}-{number}", case.protocol):
                if case.protocols <= server.protocols:
                    self.keep(OWN_SERVER[case.kind](case, server, number, self.plan))
                server.close()
                shutil.rmtree(server.directory, ignore_errors=True)

    def all(self, cases: Sequence[Case]) -> None:
        """Loads first: the others restart servers."""
        for protocol in Protocol:
            loads = [case for case in cases if case.kind is Kind.LOAD and case.protocol is protocol]
            if loads:
                self.load(protocol, loads)
        for case in cases:
            if case.kind is not Kind.LOAD:
                self.alone(case)


def write(report: Report, name: str) -> None:
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_bytes(msgspec.json.encode(report))
    (OUT / f"{name}.md").write_text(table.markdown(table.join(report.samples)))


def list_cases() -> None:
    for case in CASES.values():
        print(f"{case.name:34}{case.title}" + (f"   [{case.goal}]" if case.goal else ""))


def needed(case: Case) -> list[str]:
    """The generators of a case, and of the load before it."""
    warming = [name for spoken in case.protocols for name, *_ in measure.WARM_UP_LOADS[spoken]]
    return [*case.generators, *warming]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        list_cases()
        return 0
    try:
        cases = chosen(options.case)
        generator.build(name for case in cases for name in needed(case))
    except (UnknownCaseError, GeneratorError) as error:
        raise SystemExit(f"bench: {error}") from error
    directory = Path(tempfile.mkdtemp(prefix="magnetar-bench-", dir=options.scratch))
    run = Run(options, directory)
    try:
        run.all(cases)
    except (NotReadyError, GeneratorError) as error:
        raise SystemExit(f"bench: {error}") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        if run.samples:
            write(Report(machine=machine(), samples=run.samples), options.name)
    results = table.join(run.samples)
    print("\n" + table.text(results))
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
