"""Bookies that serve badly, and get well again: late answers, full disks, no more writers.

    slow disk      takes about as long as clients wait for an answer, so that some come too late
    slow link      all that a bookie sends comes late, in order, and nothing is lost
    full disk      the bookie is read-only, once it has noticed: it serves fences, reads and, where
                   some bytes are left, recoveries; its writers have to replace it
    no writers     an operator wants that for a moment; what was taken before is acknowledged

Several bookies may be in such a state at the same time, and in several of them.
"""

import trio

from magnetar.bookie.tests.simulation.bookies import FULL, LAST_BYTES, ROOM


class Degradation:
    """See the module's docstring."""

    def __init__(self, world, later, note):
        """`later` makes a call after a while."""
        self._world = world
        self._later = later
        self._note = note
        self._chance = world.run.chance("degradation")

    def _some(self):
        bookies = self._world.bookies
        return self._chance.sample(bookies, self._chance.randrange(len(bookies)) + 1)

    async def slow_disks(self):
        """Have disks be slow, several at a time, until cancelled."""
        chance = self._chance
        patience = self._world.climate.answer_seconds
        while True:
            await trio.sleep(chance.expovariate(4.0))
            slow = self._some()
            self._note(f"{[bookie.name for bookie in slow]} have slow disks")
            for bookie in slow:
                bookie.slow_seconds = patience * chance.choice((0.1, 0.3, 0.6, 0.9))
                for _ in range(3):
                    self._later(chance.random(), self._refuse_writers, bookie, 0.02)
            await trio.sleep(chance.choice((0.5, 2.0)))
            for bookie in slow:
                bookie.slow_seconds = 0.0

    def _refuse_writers(self, bookie, seconds):
        if bookie.serving and not self._world.calm:
            ledgers = bookie.incarnation.ledgers
            self._note(f"{bookie.name} takes no writers")
            ledgers.read_only = True
            self._later(seconds, setattr, ledgers, "read_only", False)

    async def slow_links(self):
        """Have answers come late, also when nobody waits for them any more, until cancelled."""
        chance, lags = self._chance, self._world.network.lags
        patience = self._world.climate.answer_seconds
        while True:
            await trio.sleep(chance.expovariate(3.0))
            slow = self._some()
            self._note(f"{[bookie.name for bookie in slow]} answer late")
            for bookie in slow:
                lags[bookie.name] = patience * chance.choice((0.1, 0.4, 0.8, 1.3))
            await trio.sleep(chance.choice((0.3, 1.0)))
            lags.clear()

    async def full_disks(self):
        """Have disks fill up and be emptied again, until cancelled."""
        chance = self._chance
        while True:
            await trio.sleep(chance.expovariate(3.0))
            full = self._some()[: self._world.climate.full_disks]
            usage = chance.choice((FULL, FULL, LAST_BYTES))
            for bookie in full:
                bookie.fill(usage)
            await trio.sleep(chance.choice((0.8, 2.0)))
            for bookie in full:
                bookie.fill(ROOM)

    def end(self):
        """All bookies are well."""
        self._world.network.lags.clear()
        for bookie in self._world.bookies:
            bookie.slow_seconds = 0.0
            bookie.fill(ROOM)
