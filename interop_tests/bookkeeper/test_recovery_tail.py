"""Recoveries of striped ledgers whose writer has died with 10,000 entries of which it knew nothing
confirmed, on our bookies after a start: by our client, and by Apache's beside it.

`pytest -s` prints how long each took.
"""

import socket
import struct
import time
import urllib.request
from contextlib import ExitStack

import pytest
import trio

from bench.bookies.adds import HEAD, RESPONSE_BYTES
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.members import Cluster
from interop_tests.bookkeeper.quorum import opened, read_all
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import entries, ledger_metadata
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

COUNT = 10_000
SIZE = 1024
STRIPING = Striping(3, 2, 2)
DISK_READS_MAX = 100
"""For each bookie's two thirds of the entries, 256 KiB at a time."""


def send(address: str, frames: list[bytes]) -> None:
    """Have all adds carried out by one bookie."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as one:
        for first in range(0, len(frames), 100):
            some = frames[first : first + 100]
            one.sendall(b"".join(some))
            left = RESPONSE_BYTES * len(some)
            while left:
                left -= len(one.recv(left))


async def leave_a_tail(uri: str, ledger_id: int, bookies: list[str]) -> None:
    """What a writer leaves that was killed before it heard of any of its adds."""
    run = entries.seal(ledger_id, 0, -1, 0, [b"%01024d" % i for i in range(COUNT)])
    frames: dict[str, list[bytes]] = {bookie: [] for bookie in bookies}
    for entry_id in range(COUNT):
        body = HEAD + entries.entry_of(run, entry_id)
        for position in STRIPING.write_set(entry_id):
            frames[bookies[position]].append(struct.pack(">I", len(body)) + body)
    for bookie, some in frames.items():
        await trio.to_thread.run_sync(send, bookie, some)
    async with open_zookeeper(parse(uri)) as metadata:
        ledgers = ClusterLedgers(metadata, await clusters.find(metadata))
        fresh = ledger_metadata.fresh(tuple(bookies), (STRIPING.write, STRIPING.ack), {}, 0, 1)
        await ledgers.create(ledger_id, fresh)


def disk_reads(bookie: Bookie) -> int:
    with urllib.request.urlopen(f"http://{bookie.listeners['http']}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = [line for line in lines if line.startswith("bookie_read_cache_misses ")]
    return int(float(line.split()[-1]))


def recover_by_ours(uri: str, ledger_id: int) -> tuple[int, float]:
    async def recover() -> tuple[int, float]:
        async with opened(uri, *STRIPING, password=b"") as store:
            begin = time.perf_counter()
            reader = await store.open(ledger_id, recover=True)
            return reader.last_confirmed, 1000 * (time.perf_counter() - begin)

    return trio.run(recover)


def recover_by_apache(cluster: Cluster, ledger_id: int) -> tuple[int, float]:
    found = cluster.play(
        "recovery.recover", ledger=str(ledger_id), password="", digest="CRC32C", version=2
    )
    assert found["length"] == COUNT * SIZE
    return int(found["last"]), found["milliseconds"]


@pytest.fixture(scope="module")
def cluster(zookeeper, java) -> Cluster:
    return Cluster(zookeeper, java, "tail/")


@pytest.mark.heavy
@pytest.mark.parametrize("rounds", [1, 3])
def test_ten_thousand_candidates(cluster, tmp_path, rounds) -> None:
    with ExitStack() as stack:
        bookies = [
            stack.enter_context(cluster.bookie(tmp_path / name, "--http-port", "0"))
            for name in "abc"
        ]
        addresses = [bookie.address for bookie in bookies]
        for round_ in range(rounds):
            for who in ("apache", "ours"):
                ledger_id = 1000 * rounds + 10 * round_ + (who == "ours")
                trio.run(leave_a_tail, cluster.uri, ledger_id, addresses)
                for bookie in bookies:
                    assert bookie.stop() == 0
                    bookie.start()
                if who == "ours":
                    last, took = recover_by_ours(cluster.uri, ledger_id)
                else:
                    last, took = recover_by_apache(cluster, ledger_id)
                assert last == COUNT - 1
                reads = [disk_reads(bookie) for bookie in bookies]
                print(f"{who}: {took:.0f} ms, reads of the disk {reads}")
                assert max(reads) <= DISK_READS_MAX
        assert len(trio.run(_payloads, cluster.uri, ledger_id)) == COUNT


async def _payloads(uri: str, ledger_id: int) -> list[bytes]:
    async with opened(uri, *STRIPING, password=b"") as store:
        return await read_all(await store.open(ledger_id, recover=False))
