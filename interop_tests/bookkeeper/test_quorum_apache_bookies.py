"""Our client on stock Apache bookies, and on a cluster of theirs and ours."""

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
import trio

from interop_tests.bookkeeper.apache import ApacheBookie, running_bookie
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.quorum import opened, read_all
from interop_tests.driver import SceneError
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.registration import Registration
from magnetar.bookie.format import service_info
from magnetar.core.kernel.errors import Fenced
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper
from magnetar.core.ports.tests.contract_ledger_store import CHECKS, Outcome, append

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

ONE = "6a1f0f3e-0000-4000-8000-000000000002"
NO_PASSWORD = b""
"""As the stock client of these tests has it."""


async def initialize(uri: str) -> None:
    async with open_zookeeper(parse(uri)) as metadata:
        await initialize_cluster(metadata, ONE)


@pytest.fixture(scope="module")
def uri(zookeeper) -> str:
    made = f"zk+hierarchical://{zookeeper.address}/quorum/ledgers"
    trio.run(initialize, made)
    return made


@pytest.fixture(scope="module")
def bookies(uri, tmp_path_factory) -> Iterator[list[ApacheBookie]]:
    with ExitStack() as running:
        folders = [tmp_path_factory.mktemp("apache") for _ in range(3)]
        yield [running.enter_context(running_bookie(uri, folder)) for folder in folders]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_contract_of_a_ledger_store(uri, bookies, check) -> None:
    async with opened(uri, 3, 3, 2, NO_PASSWORD) as store:
        await check(store)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)], ids=str)
async def test_batches_and_large_entries(uri, bookies, sizes) -> None:
    async with opened(uri, *sizes, NO_PASSWORD) as store:
        writer = await store.create({})
        payloads = [bytes([i % 256]) * (1 + i * 997 % 20_000) for i in range(1000)]
        payloads += [b"L" * 1_000_000] * 5
        for first in range(0, len(payloads), 100):
            await append(writer, *payloads[first : first + 100])
        assert await read_all(writer) == payloads


async def test_the_stock_client_recovers_what_we_wrote(uri, bookies) -> None:
    async with opened(uri, 3, 3, 2, NO_PASSWORD) as store:
        writer = await store.create({})
        await append(writer, *[b"entry %d" % i for i in range(100)])
        said = await trio.to_thread.run_sync(bookies[0].client, "open", str(writer.ledger_id))
        assert "last 99 " in said
        outcome = Outcome()
        writer.append([b"zombie"], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Fenced)


@pytest.mark.parametrize("version", [2, 3])
async def test_each_client_recovers_what_the_other_wrote_on_both(
    uri, bookies, java, tmp_path, version
) -> None:
    """Ensembles of three stock bookies and one of ours."""
    sizes = {"ensemble": 4, "quorum": 3, "ack": 2, "password": "", "version": version}
    texts = [f"entry {i}" for i in range(300)]

    async def play(family: str, **args: Any) -> Any:
        return await trio.to_thread.run_sync(partial(java.play, family, uri, "", **args))

    with Bookie(tmp_path, "--metadata-uri", uri) as ours:
        async with opened(uri, 4, 3, 2, NO_PASSWORD) as store:
            theirs = await play("ledgers.write", count=300, digest="CRC32C", **sizes)
            reader = await store.open(int(theirs), recover=True)
            assert await read_all(reader) == [text.encode() for text in texts]
            with pytest.raises(SceneError, match="LedgerFenced"):
                await play("ledgers.append", ledger=theirs, first=300, count=1)

            writer = await store.create({})
            await append(writer, *[text.encode() for text in texts])
            assert ours.address in writer.view.last_segment[1]
            read = {"ledger": str(writer.ledger_id), "digest": "CRC32C", "recover": True, **sizes}
            found = await play("ledgers.read", **read)
            assert found["entries"] == texts
            outcome = Outcome()
            writer.append([b"zombie"], outcome)
            (error,) = await outcome.wait()
            assert isinstance(error, Fenced)
        await trio.to_thread.run_sync(ours.stop)


async def test_a_bookie_of_ours_takes_the_place_of_a_stock_one(uri, bookies, tmp_path) -> None:
    """A mixed ensemble: it is written, recovered and read by both clients."""
    with Bookie(tmp_path) as ours:
        async with (
            open_zookeeper(parse(uri)) as metadata,
            trio.open_nursery() as nursery,
            opened(uri, 3, 3, 2, NO_PASSWORD) as store,
        ):
            writer = await store.create({})
            await append(writer, *[b"entry %d" % i for i in range(100)])
            cluster = await clusters.find(metadata)
            info = service_info.decode(ours.address, b"")
            await nursery.start(Registration(metadata, cluster, ours.address, info).run)
            lost = next(
                each for each in bookies if each.bookie_id == writer.view.last_segment[1][0]
            )
            await trio.to_thread.run_sync(lost.stop, signal.SIGKILL)
            for i in range(100, 1000):
                await append(writer, b"entry %d" % i)
            first, ensemble = writer.view.last_segment
            assert first >= 100
            assert ensemble[0] == ours.address
            said = await trio.to_thread.run_sync(bookies[0].client, "open", str(writer.ledger_id))
            assert re.search(r"^last 999 ", said, re.MULTILINE), said
            reader = await store.open(writer.ledger_id, recover=True)
            assert await read_all(reader) == [b"entry %d" % i for i in range(1000)]
            nursery.cancel_scope.cancel()
    await trio.to_thread.run_sync(lost.start)
