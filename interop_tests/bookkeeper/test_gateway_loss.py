"""What publishers through a gateway notice when one of its bookies, or the gateway itself, is lost.

Stock clients of all protocols publish all the time; what each was told to be stored is there
afterwards.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.gateway import SESSION_SECONDS, Gateway
from interop_tests.bookkeeper.publishers import PUBLISHERS, Publisher, read_all
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
STALL_SECONDS = 1.0
BEFORE_SECONDS = 2.0
AFTER_SECONDS = 8.0
"""More than the five seconds in which a bookie has to answer."""
QUORUM = ("--ensemble-size", "3", "--write-quorum", "3", "--ack-quorum", "2")


@pytest.fixture
def bookies(own_zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[list[Bookie]]:
    uri = f"zk+hierarchical://{own_zookeeper.address}/ledgers"

    async def begin() -> None:
        async with open_zookeeper(parse(uri), 10) as store:
            await initialize_cluster(store, "6a1f0f3e-0000-4000-8000-000000000002")

    trio.run(begin)
    with ExitStack() as stack:
        made = []
        for number in range(4):
            (tmp_path / f"bookie{number}").mkdir()
            cluster = ("--metadata-uri", uri, "--zk-timeout", str(SESSION_SECONDS))
            made.append(Bookie(tmp_path / f"bookie{number}", *cluster))
            if number < 3:
                stack.enter_context(made[-1])
        yield made


def check(publisher: Publisher, gateway: Gateway) -> None:
    """All that was acknowledged is there, in its order."""
    found = read_all(gateway, publisher.stored_in)
    assert publisher.acknowledged
    assert set(publisher.acknowledged) <= set(found)
    first_times = list(dict.fromkeys(found))
    assert first_times == sorted(first_times, key=lambda text: int(text[1:]))


@pytest.mark.parametrize("spare", [False, True], ids=["alone", "spare"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=lambda each: each.name)
def test_one_of_three_bookies_is_lost(
    own_zookeeper: ZooKeeper,
    bookies: list[Bookie],
    tmp_path: Path,
    how: signal.Signals,
    spare: bool,
) -> None:
    """With and without a fourth that takes its place. A hung bookie is not waited for: two others
    acknowledge each entry.
    """
    with ExitStack() as stack:
        gateway = stack.enter_context(Gateway(tmp_path / "gateway", own_zookeeper, *QUORUM))
        gateway.serve()
        publishers = [kind(name).begin(gateway) for name, kind in PUBLISHERS.items()]
        time.sleep(BEFORE_SECONDS)
        if spare:
            stack.enter_context(bookies[3])
        begin = time.monotonic()
        bookies[0].send_signal(how)
        time.sleep(AFTER_SECONDS)
        for publisher in publishers:
            publisher.finish()
        for publisher in publishers:
            stall = publisher.stall_after(begin)
            rate = len(publisher.times) / (AFTER_SECONDS + BEFORE_SECONDS)
            print(f"{how.name} {publisher.topic}: {stall:.3f} s of stall, {rate:.0f}/s")
            assert not publisher.failed, publisher.failed[:3]
        for publisher in publishers:
            check(publisher, gateway)
            assert publisher.stall_after(begin) < STALL_SECONDS, publisher.topic
        bookies[0].send_signal(signal.SIGCONT)
