"""What goes wrong in a run, at which moments, and how much at the same time.

The budget: disks of at most `ack - 1` bookies are lost or damaged, for ever. Everything else may
happen to anybody at any moment, and ends: crashes, with or without power, also at a step of the
disk; orderly stops; frozen hosts; slow or full disks and slow links (`degradation.py`); partitions
in one direction or in both; connections that are reset, or half-open; messages that take long; a
metadata store that stalls, loses answers, lags, or ends sessions.
"""

import trio

from magnetar.bookie.tests.simulation.damage import lose, rot
from magnetar.bookie.tests.simulation.degradation import Degradation
from magnetar.bookie.tests.simulation.repairers import empty
from magnetar.core.testing.simulation.virtual_metadata import SESSION_SECONDS, MetadataWeather
from magnetar.core.testing.simulation.virtual_network import Weather


class Faults:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world
        self._chance = world.run.chance("faults")
        self._damages_left = world.climate.striping.ack - 1
        self._degradation = Degradation(world, self._later, self._note)
        self._kinds = [
            (self._crash, 4),
            (self._crash_at_a_step, 4),
            (self._stop, 1),
            (self._freeze_bookie, 3),
            (self._freeze_client, 2),
            (self._partition, 8),
            (self._reset, 10),
            (self._slow_network, 2),
            (self._stall_metadata, 1),
            (self._bad_metadata, 2),
            (self._expire, 2),
            (self._empty, 1 if world.climate.repairers else 0),
            (self._damage, 3 if world.climate.damage else 0),
        ]

    async def run(self, until):
        """Let things go wrong, until that time."""
        climate, degradation = self._world.climate, self._degradation
        async with trio.open_nursery() as nursery:
            if climate.slow_disks:
                nursery.start_soon(degradation.slow_disks)
            if climate.slow_links:
                nursery.start_soon(degradation.slow_links)
            if climate.full_disks:
                nursery.start_soon(degradation.full_disks)
            await self._act(until)
            nursery.cancel_scope.cancel()

    async def _act(self, until):
        actions, weights = zip(*self._kinds, strict=True)
        while trio.current_time() < until:
            await trio.sleep(self._chance.expovariate(self._world.climate.faults_per_second))
            (action,) = self._chance.choices(actions, weights)
            action()

    def _later(self, seconds, call, *arguments):
        self._world.timeline.call_in(seconds, call, *arguments)

    def _note(self, text):
        self._world.run.trace.note(f"fault: {text}")

    def _bookie(self):
        return self._chance.choice(self._world.bookies)

    def _client(self):
        clients = self._world.clients
        return clients[self._chance.choice(list(clients))] if clients else None

    # -- bookies ------------------------------------------------------------------------------

    def _may_fall(self):
        down = sum(not bookie.serving for bookie in self._world.bookies)
        return down < self._world.climate.down_max

    def _crash(self):
        bookie = self._bookie()
        if self._may_fall():
            power = self._chance.random() < 0.5
            bookie.crash(power=power, silent=power and self._chance.random() < 0.5)

    def _crash_at_a_step(self):
        if self._may_fall():
            self._bookie().crash_at_a_step(self._chance.randrange(25))

    def _stop(self):
        if self._may_fall():
            self._bookie().stop()

    def _freeze_bookie(self):
        self._freeze(self._bookie().incarnation, self._chance.choice((0.05, 0.3, 3.0)))

    def _freeze_client(self):
        self._freeze(self._client(), self._chance.choice((0.1, 1.0, 4.0)))

    def _freeze(self, who, seconds):
        if who is not None:
            self._note(f"{getattr(who, 'name', None) or who.bookie.name} is frozen")
            who.host.freeze()
            self._later(seconds, who.host.thaw)
            if seconds > SESSION_SECONDS:
                self._later(SESSION_SECONDS, who.session.expire)

    def _damage(self):
        if self._damages_left:
            bookie = self._bookie()
            if self._chance.random() < 0.3:
                lose(bookie)
                self._damages_left -= 1
            else:
                self._damages_left -= rot(bookie)

    # -- the network --------------------------------------------------------------------------

    def _partition(self):
        client, bookie = self._client(), self._bookie()
        if client is None:
            return
        pairs = [(client.name, bookie.name), (bookie.name, client.name)]
        pairs = self._chance.choice((pairs[:1], pairs[1:], pairs))
        self._note(f"nothing passes {pairs}")
        seconds = self._chance.choice((0.02, 0.1, 0.5, 2.5))
        for pair in pairs:
            self._world.network.partition(*pair)
            self._later(seconds, self._world.network.heal, *pair)

    def _reset(self):
        ends = list(self._world.network.ends)
        if ends:
            end = self._chance.choice(ends)
            self._note(f"{end.name} and {end.peer.name} lose their connection")
            self._world.network.reset(end)

    def _slow_network(self):
        self._later(self._chance.choice((0.3, 1.0)), self._fast_network)
        self._world.network.weather = Weather(
            self._chance.choice((0.001, 0.005, 0.02)), self._chance.choice((0.0, 0.02, 0.1))
        )

    def _fast_network(self):
        self._world.network.weather = Weather()

    def ambush(self, writer, recoverer, ledger):
        """Have a recovery and the writer meet bookies in another order: some do not hear of the
        fence at first, and the writer does not hear of others that are fenced.
        """
        members = list(ledger.segment[-1].ensembleMember)
        names = [each.rpartition(":")[0] for each in self._chance.sample(members, len(members))]
        deaf = names[: self._chance.choice((1, 1, 2))]
        self._note(f"an ambush: {recoverer} does not reach {deaf}")
        for name in deaf:
            self._world.network.refuse(recoverer, name)
            seconds = self._chance.choice((0.02, 0.04, 0.1))
            self._later(seconds, self._world.network.allow, recoverer, name)
            if self._chance.random() < 0.7:
                self._hold(writer, name, self._chance.choice((0.02, 0.1, 0.3)))
        for name in names[len(deaf) :]:
            self._hold(name, writer, self._chance.choice((0.0, 0.05, 0.2, 1.0)))
            if self._chance.random() < 0.3:
                self._hold(writer, name, self._chance.choice((0.01, 0.05, 0.2)))
            if self._chance.random() < 0.3:
                self._hold(name, recoverer, self._chance.choice((0.01, 0.05, 0.2)))

    async def lose_a_fence(self, writing, recoverer):
        """Have a bookie like Apache's lose power behind a denial, when its fence is not durable;
        then the writer, which has not heard of any fence, goes on: with it and with one that the
        recovery does not reach.
        """
        writer, history, world = writing.client.name, writing.history, self._world
        writing.paused = True
        await trio.sleep(0.1)
        if history.acked + 1 < len(history.payloads):  # it would change the ensemble first
            writing.paused = False
            return
        _, ensemble = history.view().last_segment
        bookies = {bookie.bookie_id: bookie for bookie in world.bookies}
        next_set = [ensemble[i] for i in history.view().striping.write_set(len(history.payloads))]
        stock = [each for each in next_set if bookies[each].stock]
        if not stock or not self._may_fall():
            writing.paused = False
            return
        forgetful = bookies[self._chance.choice(stock)]
        next_set.remove(forgetful.bookie_id)
        deaf = bookies[self._chance.choice(next_set)]
        self._note(f"{forgetful.name} is to forget a fence; {recoverer} does not reach {deaf.name}")
        world.network.refuse(recoverer, deaf.name)
        self._later(1.5, world.network.allow, recoverer, deaf.name)
        for other in ensemble:
            if bookies[other] not in (forgetful, deaf):
                self._hold(bookies[other].name, writer, 1.5)
        forgetful.slow_seconds, forgetful.crashes_early = 0.1, True
        self._later(0.7, self._go_on, forgetful, writing)

    def _go_on(self, forgetful, writing):
        forgetful.slow_seconds, forgetful.crashes_early = 0.0, False
        writing.paused = False
        writing.hurry()

    def strike(self, writer, ledger):
        """Take bookies of the last segment from a writer, as many as there are others: it has to
        change the ensemble.
        """
        members = [each.rpartition(":")[0] for each in ledger.segment[-1].ensembleMember]
        spare = len(self._world.bookies) - len(members)
        count = self._chance.choice((1, max(spare, 1)))
        struck = self._chance.sample(members, min(count, len(members)))
        self._note(f"{writer} loses {struck}")
        for name in struck:
            self._world.network.refuse(writer, name)
            self._later(2.0, self._world.network.allow, writer, name)
            for end in list(self._world.network.ends):
                if {end.name, end.peer.name} == {writer, name}:
                    end.reset()

    def _hold(self, sender, receiver, seconds):
        self._world.network.partition(sender, receiver)
        self._later(seconds, self._world.network.heal, sender, receiver)

    # -- the metadata store -------------------------------------------------------------------

    def _stall_metadata(self):
        self._note("the metadata store stalls")
        self._world.metadata.stall()
        self._later(self._chance.choice((0.1, 0.3, 2.0)), self._world.metadata.go_on)

    def _bad_metadata(self):
        self._later(self._chance.choice((0.3, 1.0)), self._good_metadata)
        self._world.metadata.weather = MetadataWeather(
            self._chance.choice((0.002, 0.01, 0.05)),
            lost=self._chance.choice((0.0, 0.0, 0.05)),
            unsure=self._chance.choice((0.0, 0.1, 0.3)),
            lag_seconds=self._chance.choice((0.0, 0.1, 1.0)),
            timeout_seconds=self._chance.choice((0.3, 3.0)),
        )

    def _good_metadata(self):
        self._world.metadata.weather = MetadataWeather()

    def _expire(self):
        who = self._chance.choice((self._bookie().incarnation, self._client(), self._repairer()))
        if who is not None:
            self._note(f"the session of {getattr(who, 'name', None) or who.bookie.name} ends")
            who.session.expire()

    def _repairer(self):
        names = list(self._world.repairers)
        return self._world.clients[self._chance.choice(names)] if names else None

    def _empty(self):
        world = self._world
        world.nursery.start_soon(empty, world, world.name("operator"), self._bookie().bookie_id)

    # -- the end ------------------------------------------------------------------------------

    def end(self):
        """Nothing is wrong from now on, but for disks that rot with the rest of the budget: what
        ledgers lack then is found by nobody but an auditor that looks for it.
        """
        world = self._world
        for _ in range(self._damages_left if world.climate.damage else 0):
            rot(self._bookie())
        self._note("all is well")
        world.network.weather = Weather()
        world.metadata.weather = MetadataWeather()
        world.metadata.go_on()
        self._degradation.end()
        for sender, receiver in world.network.partitions:
            world.network.heal(sender, receiver)
        for who in [bookie.incarnation for bookie in world.bookies] + list(world.clients.values()):
            if who is not None:
                who.host.thaw()
                if hasattr(who, "crash_in_steps"):
                    who.crash_in_steps = None
