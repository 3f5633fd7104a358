"""Which connections are read, and what is refused, while storage has no room."""

import pytest
import trio

from magnetar.bookie.requests.back_pressure import BackPressure
from magnetar.bookie.requests.in_progress import InProgress
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.messages import Added, Read, Status
from magnetar.core.kernel.errors import Overloaded
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES

LIMITS = RequestLimits(
    journal_queue_size=3, max_pending_add_requests_per_thread=2, db_storage_max_throttle_time_ms=500
)
COUNT = 2_000


class Storage:
    """A `GroupCommit` that says what it is told."""

    congested = False

    def begin_group(self) -> None: ...

    def flush_group(self) -> None: ...


class Clock:
    def __init__(self) -> None:
        self.now = 100.0


class Made:
    def __init__(self) -> None:
        self.storage, self.adds, self.clock = Storage(), InProgress(0, PAUSE_PUBLISHES), Clock()
        self.pressure = BackPressure(self.storage, self.adds, LIMITS, lambda: self.clock.now)

    def refuses(self, *, urgent: bool = False) -> bool:
        return isinstance(self.pressure.refusal(1, urgent=urgent), Overloaded)

    def is_congested(self) -> bool:
        self.pressure.flush_group()
        return self.pressure.congested


def test_a_long_congestion_is_told() -> None:
    made = Made()
    made.storage.congested = True
    assert made.is_congested()
    assert not made.refuses()
    made.clock.now += 0.49
    assert made.is_congested()
    made.clock.now += 0.02
    assert not made.is_congested(), "it reads again, to refuse"
    assert made.refuses()
    assert made.refuses(urgent=True)
    made.storage.congested = False
    assert not made.is_congested()
    assert not made.refuses()
    made.storage.congested = True
    assert made.is_congested(), "the time begins anew"
    assert made.pressure.refused == 2


def test_adds_that_wait_hold_those_who_add_and_more_are_refused() -> None:
    made = Made()
    for count, congested, refuses in ((2, False, False), (3, True, False), (5, True, True)):
        made.adds.count = count
        assert made.is_congested() is congested
        assert made.refuses() is refuses
    assert not made.refuses(urgent=True)
    made.adds.count = 0
    assert not made.is_congested()
    assert not made.refuses()


async def hears_adds(peer, ledger_id) -> None:
    for entry_id in range(COUNT):
        assert await peer.hear() == Added(Status.OK, ledger_id, entry_id)


async def test_no_add_is_refused_while_the_disk_keeps_up(disk) -> None:
    limits = RequestLimits(journal_queue_size=10)
    async with serving(disk, limits=limits) as served, served.dial() as one, served.dial(3) as two:
        async with trio.open_nursery() as nursery:
            for ledger_id, peer in ((1, one), (2, two)):
                nursery.start_soon(peer.say, *[add(ledger_id, i) for i in range(COUNT)])
                nursery.start_soon(hears_adds, peer, ledger_id)
        assert served.services.storage.refused == 0


@pytest.mark.parametrize("version", [2, 3])
async def test_who_adds_to_a_bookie_that_is_stuck_hears_so_and_can_read(
    disk, version, monkeypatch
) -> None:
    limits = RequestLimits(db_storage_max_throttle_time_ms=0)
    async with serving(disk, limits=limits) as served, served.dial(version) as peer:
        assert await peer.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        monkeypatch.setattr(type(served.store._parts), "congested", True)
        await peer.ask(Read(1, 0))
        assert await peer.ask(add(1, 1)) == Added(Status.TOO_MANY_REQUESTS, 1, 1)
        assert (await peer.ask(Read(1, 0))).status is Status.OK
        monkeypatch.undo()
        await peer.ask(Read(1, 0))
        assert await peer.ask(add(1, 1)) == Added(Status.OK, 1, 1)
