"""Who has more reads than one sweep answers goes on behind all others."""

import trio

from magnetar.bookie.requests.reads.read_turns import SLICE_SECONDS, TURN_READS, ReadTurns
from magnetar.bookie.requests.tests.peers import add
from magnetar.bookie.rpc.messages import Read, Status


class FakeLink:
    def __init__(self, nursery):
        self.nursery = nursery
        self.calls = []

    def begin(self):
        self.calls.append("begin")

    def settle(self):
        self.calls.append("settle")


class Asking:
    """A connection with so many turns to take, each of so many seconds."""

    def __init__(self, bench, turns, seconds=0.0):
        self.bench, self.turns, self.seconds = bench, turns, seconds

    def take_turn(self):
        self.bench.taken.append(self)
        self.bench.now += self.seconds
        self.turns -= 1
        if self.turns:
            self.bench.later(self)


class Bench:
    def __init__(self, nursery):
        self.now, self.taken = 0.0, []
        self.link = FakeLink(nursery)
        self.turns = ReadTurns(lambda: self.now)

    def later(self, who):
        self.turns.later(who, self.link)


async def test_turns_are_taken_one_after_the_other():
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        many, few = Asking(bench, 3), Asking(bench, 1)
        bench.later(many)
        bench.later(few)
    assert bench.taken == [many, few, many, many]
    assert bench.link.calls == ["begin", "settle"]


async def test_the_loop_turns_after_a_while():
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        bench.later(Asking(bench, 4, SLICE_SECONDS))
        bench.later(Asking(bench, 1, SLICE_SECONDS))
    assert bench.link.calls == ["begin", "settle"] * 5


async def test_who_asks_for_much_does_not_keep_others_from_their_turn(served):
    async with served.dial() as much, served.dial() as little:
        await much.ask(*(add(1, i, b"%d" % i) for i in range(10)))
        await much.say(*[Read(1, i % 10) for i in range(20 * TURN_READS)])
        assert (await little.ask(Read(1, 7))).status is Status.OK
        heard = [await much.hear() for _ in range(20 * TURN_READS)]
        assert {one.status for one in heard} == {Status.OK}
        assert served.services.turns.taken > 0
