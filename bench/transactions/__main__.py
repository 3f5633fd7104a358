"""Transactions of Pulsar's Java client: rate, CPU of the server, and how long a commit takes.

    python -m bench.transactions [--open 8] [--messages 100] [--transactions 1000] [--rounds 5]
    python -m bench.transactions --server both      Apache Pulsar, too; needs a JDK and Maven anyway

Each transaction publishes messages to one topic and acknowledges as many of another one; several
are open at once. Both servers sync what they store. They run side by side and are loaded in turn,
by the same program (`Load.java`), each with a client process of its own. The time of a commit
is what the client waits for its answer; beside it stands the time of a sync on the bare disk, taken
before every round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.drive import disk
from bench.drive.cases import Protocol
from bench.drive.server import Magnetar, Server
from bench.peers.pulsar import Pulsar
from bench.transactions.load import Round, Shape, TransactionLoad

WARM_UP_ROUNDS = 8
"""Of 1,000 transactions: Java compiles for that long, in the client and in Apache's broker."""


def line(found: Round) -> str:
    return (
        f"{found.per_second:7.1f} transactions/s {found.cpu_ms:7.2f} ms CPU each"
        f" (client {found.client_ms:6.2f})"
        f"   commit p50 {found.p50_ms:6.2f} p99 {found.p99_ms:7.2f} ms"
    )


def median(rounds: list[Round]) -> Round:
    """Of each figure."""
    names = Round.__struct_fields__
    return Round(
        **{name: statistics.median(getattr(each, name) for each in rounds) for name in names}
    )


def ratios(ours: list[Round], theirs: list[Round], field: str) -> str:
    """Of pairs of rounds: the median, and the extremes."""
    pairs = zip(ours, theirs, strict=True)
    found = sorted(getattr(one, field) / getattr(other, field) for one, other in pairs)
    return f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})"


def summary(rounds: dict[str, list[Round]], synced_ms: list[float]) -> str:
    """The medians, and the ratios if there are two servers."""
    lines = [f"medians; p99 of a sync on the bare disk {statistics.median(synced_ms):.2f} ms"]
    lines += [f"{name:12} {line(median(found))}" for name, found in rounds.items()]
    if len(rounds) == 2:
        ours, theirs = rounds.values()
        lines.append(
            f"ratio of {len(ours)} pairs: rate {ratios(ours, theirs, 'per_second')},"
            f" CPU {ratios(ours, theirs, 'cpu_ms')}, p99 {ratios(ours, theirs, 'p99_ms')}"
        )
    return "\n".join(lines)


def servers(chosen: str, folder: Path) -> list[Server]:
    made: list[Server] = []
    for name in ("magnetar", "pulsar"):
        (folder / name).mkdir()
    if chosen != "pulsar":
        made.append(Magnetar(folder / "magnetar", synced=True))
    if chosen != "magnetar":
        made.append(Pulsar(folder / "pulsar", synced=True, transactions=True))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--open", type=int, default=8, help="transactions at once")
    parser.add_argument("--messages", type=int, default=100, help="of each, and acknowledgements")
    parser.add_argument("--size", type=int, default=100, help="bytes of a message")
    parser.add_argument("--unbatched", action="store_true", help="each message is an entry")
    parser.add_argument("--transactions", type=int, default=1_000, help="of a round")
    parser.add_argument("--rounds", type=int, default=5, help="that count")
    parser.add_argument("--server", choices=["magnetar", "pulsar", "both"], default="magnetar")
    asked = parser.parse_args()
    shape = Shape(asked.open, asked.messages, asked.size, not asked.unbatched)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, loads = Path(name), dict[str, TransactionLoad]()
        for server in servers(asked.server, folder):
            server.prepare()
            stack.callback(server.close)
            stack.callback(server.stop)
            server.start()
            port = server.port(Protocol.PULSAR)
            made = TransactionLoad(port, server.pid, shape, server.directory)
            stack.callback(made.stop)
            loads[server.name] = made
        rounds: dict[str, list[Round]] = {name: [] for name in loads}
        synced_ms: list[float] = []
        for number in range(-WARM_UP_ROUNDS, asked.rounds):
            for name, load in loads.items():
                synced = disk.probe(folder)
                found = load.round(asked.transactions)
                print(f"{name:12} {line(found)}   sync p99 {synced.p99_ms:.2f}", flush=True)
                if number >= 0:
                    rounds[name].append(found)
                    synced_ms.append(synced.p99_ms)
        print(summary(rounds, synced_ms))


if __name__ == "__main__":
    main()
