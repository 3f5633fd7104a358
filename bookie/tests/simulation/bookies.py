"""Simulated bookies: the real bookie on a disk in memory, crash after crash.

    state      leaves for
    down       starting, when the faults start it again; never, if its disk is lost
    starting   serving; down, by a crash, or if the start fails (it is tried again)
    serving    down, by a crash (of the process, or of power, at once or at a step of the disk),
               or by an orderly stop

Each start is an `Incarnation`. When it crashes, its disk is copied as the crash leaves it; from
then on its own disk, its network and its session do nothing any more, so the tasks of the dead
process may end in their own time, and change nothing.
"""

from functools import partial

import msgspec
import trio

from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.bookie.membership import Membership
from magnetar.bookie.requests.front import BookieFront
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.running import open_bookie
from magnetar.bookie.server.directories import claim
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.tests.memory_machine import QUIET
from magnetar.bookie.tests.simulation.promises import NOTICE_SECONDS
from magnetar.bookie.tests.simulation.served import ServedConnection, SimulatedLoop
from magnetar.bookie.tests.simulation.stock import StockFences
from magnetar.core.kernel.errors import AlreadyExists, BrokerError, Corrupted, StorageFailed
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.ports.machine import Machine
from magnetar.core.testing.memory_database import MemoryDatabases
from magnetar.core.testing.memory_disk import MemoryDisk
from magnetar.core.testing.simulation.virtual_threads import VirtualThreads

PORT = 3181
SETTINGS = msgspec.structs.replace(
    QUIET,
    journal_size_max_bytes=16 * 1024,
    journal_spares_max=1,
    entry_log_size_max_bytes=16 * 1024,
    write_cache_bytes=16 * 1024,
    minor_compaction_interval_seconds=0.4,
    major_compaction_interval_seconds=1.0,
    entries_prove_themselves=False,
    disk_check_interval_seconds=NOTICE_SECONDS - 0.05,
)
"""Small, so that journals and logs roll, and halves of the cache fill."""
SPARE_BYTES = 1 << 30
"""What has to be free for recoveries."""
ROOM = DiskUsage(0.5, 1 << 40)
FULL = DiskUsage(0.97, 2 * SPARE_BYTES)
LAST_BYTES = DiskUsage(0.99, SPARE_BYTES // 2)
"""Too full for a recovery, too."""


class Incarnation:
    """One process of a bookie; see the module's docstring."""

    def __init__(self, bookie, disk, number):
        world = bookie.world
        self.bookie = bookie
        self.number = number
        self.disk = disk
        self.host = world.timeline.host()
        self.over = False
        self.serving = False
        self.crash_in_steps = None
        """Power fails during that step of the disk, counted from now."""
        self.loop = None
        self.running = None
        self.ledgers = None
        self.scope = trio.CancelScope()
        self.stopped = trio.Event()
        self.session = world.metadata.session(f"{bookie.bookie_id}#{number}", self.host)
        self._chance = world.run.chance(f"{bookie.bookie_id} {number}")
        disk.usage_now = bookie.usage
        disk.before = self._before_step
        disk.later = lambda call: self.host.call_in(self._disk_seconds(), call)

    def _disk_seconds(self):
        seconds = self._chance.expovariate(1 / self.bookie.world.disk_seconds)
        return seconds + self.bookie.slow_seconds

    def _before_step(self, step, path):
        if self.over:
            raise OSError(5, "this process is gone", path)
        if self.crash_in_steps is not None:
            self.crash_in_steps -= 1
            if self.crash_in_steps < 0:
                self.bookie.crash(power=True, silent=self._chance.random() < 0.5)
                raise OSError(5, "power is gone", path)

    async def run(self):
        world, bookie = self.bookie.world, self.bookie
        machine = Machine(
            self.disk,
            MemoryDatabases,
            world.run.clock,
            VirtualThreads(self.host, self._disk_seconds),
            self._chance.getrandbits,
        )
        settings = msgspec.structs.replace(
            SETTINGS,
            bookie_id=bookie.bookie_id,
            checkpoint_interval_seconds=self._chance.choice((0.3, 1.0, 3.0)),
            gc_interval_seconds=self._chance.choice((0.2, 0.5, 2.0)),
        )
        membership = Membership(self.session, world.cluster, bookie.bookie_id)
        with claim(self.disk, "/bookie") as directories:
            await membership.check(machine.threads, directories)
            async with trio.open_nursery() as nursery:
                loop = SimulatedLoop(self.host, nursery, world.run.clock)
                self.disk.ended = loop.ended
                async with open_bookie(
                    machine, directories, membership.ledgers, settings, self._failed, loop
                ) as running:
                    loop.running = self.running = running
                    self._watch_collector(running)
                    running.flusher.leave_to_loop()
                    await self._serve(loop, running, membership)
                nursery.cancel_scope.cancel()

    def _watch_collector(self, running):
        """Have it noted which ledgers are taken for deleted."""
        drop, histories = running.bookie.deleted, self.bookie.world.histories

        def deleted(ledger_id):
            if not self.over:
                histories.collected(self.bookie.bookie_id, ledger_id)
            drop(ledger_id)

        running.bookie.deleted = deleted

    async def _serve(self, loop, running, membership):
        world, bookie = self.bookie.world, self.bookie
        self.ledgers = ServedLedgers(running.bookie, world.run.clock, SPARE_BYTES)
        services = BookieServices(self.ledgers, running, RequestLimits(), None)
        front = BookieFront(services)
        fences = StockFences(bookie, running, self.ledgers) if bookie.stock else None

        def accept(end):
            ServedConnection(loop, end, services, world.promises, bookie.bookie_id, fences)

        if self.over:
            return
        self.loop = loop
        bookie.note_usage()
        world.network.listen(bookie.name, self.host, accept)
        info = ServiceInfo((BookieEndpoint("bookie", bookie.name, PORT),))
        registration = membership.registration(info, 2.0)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(front.run)
                nursery.start_soon(front.tell_mode, registration.set_read_only, NOTICE_SECONDS)
                await nursery.start(registration.run)
                self.serving = True
                world.run.trace.note(f"{bookie.name} serves")
                world.check_notes(bookie)
                await self.stopped.wait()
                self.serving = False
                await registration.end()
                nursery.cancel_scope.cancel()
        finally:
            self.serving = False
            if not self.over:
                world.network.cut(bookie.name)
                loop.stop()

    def _failed(self, reason):
        """Storage has failed: the process ends."""
        if not self.over:
            self.bookie.world.run.trace.note(f"{self.bookie.name} fails: {reason}")
            self.bookie.crash(power=False)

    def end(self):
        """The process is gone; its tasks end in their own time."""
        self.over = True
        self.serving = False
        self.host.thaw()
        self.session.end()
        if self.loop is not None:
            self.loop.stop()
        self.scope.cancel()


class SimulatedBookie:
    """See the module's docstring."""

    def __init__(self, world, number):
        self.world = world
        self.name = f"bookie-{number}"
        self.bookie_id = f"{self.name}:{PORT}"
        self.disk = MemoryDisk()
        """The one that the next start finds."""
        self.stock = number < world.climate.stock
        """Whether it tells of a fence as Apache's bookies do."""
        if self.stock:
            world.promises.stock.add(self.bookie_id)
        self.crashes_early = False
        """Whether it loses power with the next denial that comes before its fence is durable."""
        self.slow_seconds = 0.0
        """How much longer each access of its disk takes now."""
        self.usage = ROOM
        """Of its disk."""
        self.lost = False
        """Whether its disk is gone, for ever."""
        self.incarnation = None
        self._number = 0
        self.chance = world.run.chance(self.name)

    @property
    def serving(self):
        return self.incarnation is not None and self.incarnation.serving

    async def read(self, view, entry_id):
        """Read an entry that is intact, as a client would."""
        ledgers = self.incarnation.ledgers
        entry = ledgers.entry_at_once(view.ledger_id, entry_id)
        if entry is None:
            entry = await ledgers.entry(view.ledger_id, entry_id)
        view.open_entry(entry_id, entry)

    def start(self):
        """Start it, unless it runs or cannot."""
        if self.incarnation is None and not self.lost:
            self._number += 1
            self.incarnation = Incarnation(self, self.disk, self._number)
            self.world.network.revive(self.name)
            self.world.nursery.start_soon(self._run, self.incarnation)

    async def _run(self, incarnation):
        trace = self.world.run.trace
        trace.note(f"{self.name} starts")
        try:
            with incarnation.scope:
                await incarnation.run()
        except* (BrokerError, OSError) as group:
            if not incarnation.over:
                errors = [str(error) for error in leaves(group)]
                trace.note(f"{self.name} cannot run: {errors}")
                self._check_start(group)
        if incarnation.over:
            return
        trace.note(f"{self.name} has stopped")
        self.disk = incarnation.disk.left(None)
        incarnation.end()
        self.incarnation = None

    def _check_start(self, group):
        """A bookie may fail to start because of its metadata store, or because of damage."""
        for error in leaves(group):
            expected = isinstance(error, AlreadyExists | StorageFailed) and not isinstance(
                error, Corrupted
            )
            if not expected and self.bookie_id not in self.world.promises.damaged:
                self.world.verdict.broken(f"{self.name} does not start again: {error!r}")

    def crash(self, *, power, silent=False):
        """End the process; with `power`, what is not synced may be lost."""
        incarnation, self.incarnation = self.incarnation, None
        if incarnation is None:
            return
        self.world.run.trace.note(
            f"{self.name} {'loses power' if power else 'is killed'}{' silently' if silent else ''}"
        )
        self.disk = incarnation.disk.left(self.chance.randrange if power else None)
        incarnation.end()
        self.world.network.cut(self.name, silent=silent)

    def crash_at_a_step(self, steps):
        if self.incarnation is not None:
            self.incarnation.crash_in_steps = steps

    def denied_early(self):
        """It has told of a fence that is not durable."""
        if self.crashes_early:
            self.crashes_early = False
            self.world.timeline.call_in(0.0, partial(self.crash, power=True))
            self.world.timeline.call_in(0.01, self.start)

    def stop(self):
        """End it in order."""
        if self.incarnation is not None:
            self.incarnation.stopped.set()

    def fill(self, usage):
        """Have its disk be so full."""
        if usage is not self.usage:
            self.world.run.trace.note(f"the disk of {self.name} is {usage.used_part:.0%} full")
            self.usage = usage
            self.note_usage()
            if self.incarnation is not None:
                self.incarnation.disk.usage_now = usage

    def note_usage(self):
        """It sees soon how full its disk is."""
        full, spare = self.usage is not ROOM, self.usage is not LAST_BYTES
        self.world.promises.filled(self.bookie_id, full=full, spare=spare)


def leaves(group):
    """All errors that are in a group."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
