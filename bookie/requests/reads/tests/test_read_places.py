"""Places for reads that wait: shares of all, and who loses them."""

from magnetar.bookie.requests.in_progress import InProgress
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.read_places import FEW, STUCK_SECONDS, ReadPlaces
from magnetar.bookie.requests.tests.peers import add, serving
from magnetar.bookie.rpc.messages import Read, Status
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.memory.pauses import PAUSE_REQUESTS


class Client:
    """Asks and receives nothing."""

    def __init__(self, bookie) -> None:
        self.bookie = bookie
        self.own = 0
        self.reason = ""

    def ask_for_many(self) -> int:
        while self.bookie.places.has_one(self.own):
            self.own += 1
            self.bookie.reads.count += 1
            self.bookie.places.waits(self, self.own)
        return self.own

    def give_up(self, reason, /) -> None:
        self.bookie.reads.count -= self.own
        self.own, self.reason = 0, reason
        self.bookie.places.moves(self)


class Bookie:
    def __init__(self, limit) -> None:
        self.now = 0.0
        self.reads = InProgress(0, PAUSE_REQUESTS)
        limits = RequestLimits(max_pending_read_requests_per_thread=limit)
        self.places = ReadPlaces(limits, self.reads, lambda: self.now)


def test_who_comes_later_has_a_share_too() -> None:
    bookie = Bookie(10_000)
    counts = [Client(bookie).ask_for_many() for _ in range(8)]
    assert counts[0] == 10_000
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] > 3_000
    assert Client(bookie).ask_for_many() > 3_000


def test_everybody_may_have_a_few_as_long_as_there_are_any() -> None:
    bookie = Bookie(20)
    counts = [Client(bookie).ask_for_many() for _ in range(12)]
    assert counts == [20, 17, *[FEW] * 7, 11, 0, 0]


def test_who_is_stuck_for_long_loses_its_places_to_others_only() -> None:
    bookie = Bookie(20)
    first, second = Client(bookie), Client(bookie)
    assert first.ask_for_many() == 20
    bookie.now += 1
    assert second.ask_for_many() == 17
    bookie.now += STUCK_SECONDS - 1
    assert Client(bookie).ask_for_many() == 17
    assert first.reason
    assert not second.reason
    assert bookie.places.given_up == 1


async def test_clients_that_never_receive_make_room(disk) -> None:
    limits = RequestLimits(max_pending_read_requests_per_thread=100)
    link_limits = LinkLimits(outbox_high_bytes=64 * 1024)
    async with (
        serving(disk, limits=limits, link_limits=link_limits) as served,
        served.dial() as flood,
        served.dial() as other,
    ):
        await flood.ask(add(1, 0, b"z" * 1_000_000))
        await flood.say(*[Read(1, 0)] * 100)
        for _ in range(20):
            assert (await other.ask(Read(1, 0))).status is Status.OK
        places = served.services.places
        (stuck,) = places._stuck
        places._stuck[stuck] -= STUCK_SECONDS
        places._take_back()
        assert places.given_up == 1
        assert served.services.reads.count == 0
        assert (await other.ask(Read(1, 0))).status is Status.OK
