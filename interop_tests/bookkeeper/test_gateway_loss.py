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
from interop_tests.bookkeeper.zookeeper import ZooKeeper, free_port
from interop_tests.waiting import until
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
STALL_SECONDS = 1.0
BEFORE_SECONDS = 2.0
AFTER_SECONDS = 8.0
"""More than the five seconds in which a bookie has to answer."""
TAKEOVER_SECONDS = 15
OUTAGE_SECONDS = 4
LONG_OUTAGE_SECONDS = 15
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


@pytest.mark.parametrize(
    ("how", "spare"),
    [
        pytest.param(signal.SIGKILL, False, marks=pytest.mark.heavy),
        (signal.SIGKILL, True),
        (signal.SIGSTOP, False),
        pytest.param(signal.SIGSTOP, True, marks=pytest.mark.heavy),
    ],
)
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


def free_ports() -> tuple[str, ...]:
    """Flags for two gateways of which one serves at a time, at the same addresses."""
    flags = ("--pulsar-port", "--kafka-port", "--mqtt-port")
    return tuple(word for flag in flags for word in (flag, str(free_port())))


def test_a_gateway_takes_over_from_one_that_was_killed(
    own_zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    """It waits, and listens when the session of the first has ended; clients connect again."""
    ports = free_ports()
    with ExitStack() as stack:
        first = stack.enter_context(Gateway(tmp_path / "one", own_zookeeper, *QUORUM, *ports))
        first.serve()
        second = stack.enter_context(
            Gateway(tmp_path / "two", own_zookeeper, *QUORUM, *ports, "--zk-timeout", "30")
        )
        publishers = [kind(name).begin(first) for name, kind in PUBLISHERS.items()]
        until(lambda: "waiting for the end of another gateway" in second.log())
        time.sleep(BEFORE_SECONDS)
        begin = time.monotonic()
        first.process.kill()
        second.serve()
        taken = time.monotonic() - begin
        time.sleep(BEFORE_SECONDS)
        for publisher in publishers:
            publisher.finish()
        for publisher in publishers:
            stall = publisher.stall_after(begin)
            print(f"serves after {taken:.1f} s, {publisher.topic}: {stall:.1f} s of stall")
            assert not publisher.failed, publisher.failed[:3]
            check(publisher, second)
        assert taken < TAKEOVER_SECONDS


def test_of_two_gateways_that_start_at_once_one_serves(
    own_zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    with (
        Gateway(tmp_path / "one", own_zookeeper, *QUORUM) as one,
        Gateway(tmp_path / "two", own_zookeeper, *QUORUM) as two,
    ):
        until(lambda: one.process.poll() is not None or two.process.poll() is not None)
        ended, serves = (one, two) if one.process.poll() is not None else (two, one)
        assert ended.process.returncode == 2
        assert "another gateway runs on this cluster" in ended.log()
        serves.serve()
        publisher = PUBLISHERS["kafka"]("kafka").begin(serves)
        publisher.finish()
        check(publisher, serves)


def test_zookeeper_is_away_for_less_than_a_session(
    own_zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    """Open topics go on: nothing of theirs is asked of it until a ledger is full."""
    with Gateway(tmp_path / "one", own_zookeeper, *QUORUM, "--zk-timeout", "20") as gateway:
        gateway.serve()
        publishers = [kind(name).begin(gateway) for name, kind in PUBLISHERS.items()]
        time.sleep(BEFORE_SECONDS)
        begin = time.monotonic()
        own_zookeeper.kill()
        time.sleep(OUTAGE_SECONDS)
        own_zookeeper.start()
        time.sleep(BEFORE_SECONDS)
        for publisher in publishers:
            publisher.finish()
        for publisher in publishers:
            stall = publisher.stall_after(begin)
            print(f"ZooKeeper away for {OUTAGE_SECONDS} s, {publisher.topic}: {stall:.3f} s")
            assert not publisher.failed, publisher.failed[:3]
            check(publisher, gateway)
        assert gateway.process.poll() is None


def test_zookeeper_is_away_for_longer_than_a_session(
    own_zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    """With the policy `reconnect` clients notice nothing, and no second gateway starts later."""
    policy = ("--zk-session-expired-policy", "reconnect")
    with Gateway(tmp_path / "one", own_zookeeper, *QUORUM, *policy) as gateway:
        gateway.serve()
        publishers = [kind(name).begin(gateway) for name, kind in PUBLISHERS.items()]
        time.sleep(BEFORE_SECONDS)
        begin = time.monotonic()
        own_zookeeper.kill()
        until(lambda: "serves on without" in gateway.log())
        time.sleep(LONG_OUTAGE_SECONDS)
        own_zookeeper.start()
        until(lambda: "has its place again" in gateway.log())
        time.sleep(BEFORE_SECONDS)
        for publisher in publishers:
            publisher.finish()
        for publisher in publishers:
            stall = publisher.stall_after(begin)
            print(f"ZooKeeper away for longer, {publisher.topic}: {stall:.3f} s of stall")
            assert not publisher.failed, publisher.failed[:3]
            check(publisher, gateway)
            assert stall < STALL_SECONDS
        with Gateway(tmp_path / "two", own_zookeeper, *QUORUM) as second:
            assert second.process.wait(60) == 2
        later = PUBLISHERS["kafka"]("later").begin(gateway)
        later.finish()
        check(later, gateway)
