"""One run: bookies, a metadata store, clients and faults, all from one seed.

0 to `CALM_AT`      stories are told at the same time, while things go wrong
then                all faults end; within `PATIENCE_SECONDS` every ledger is recovered and
                    read, a new ledger is written, and what bookies have is compared with what
                    they have promised
"""

import logging

import trio
from msgspec import Struct

from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.requests.session import run_of
from magnetar.bookie.rpc.messages import Add
from magnetar.bookie.tests.simulation.bookies import SimulatedBookie, leaves
from magnetar.bookie.tests.simulation.climate import CALM_AT, climate_of
from magnetar.bookie.tests.simulation.faults import Faults
from magnetar.bookie.tests.simulation.histories import PASSWORD, Histories
from magnetar.bookie.tests.simulation.last_checks import LastChecks
from magnetar.bookie.tests.simulation.marks import Marks
from magnetar.bookie.tests.simulation.promises import Promises, packed_lac
from magnetar.bookie.tests.simulation.repairers import inspect, repair
from magnetar.bookie.tests.simulation.stories import Stories
from magnetar.bookie.tests.simulation.verdict import Verdict, Violation
from magnetar.core.kernel.errors import BrokerError, Fenced, StorageFailed
from magnetar.core.testing.simulation.seeded_run import SeededRun, simulate
from magnetar.core.testing.simulation.virtual_metadata import MetadataService
from magnetar.core.testing.simulation.virtual_network import VirtualNetwork

PATIENCE_SECONDS = 60.0
STORIES = 4
KEY = digests.master_key(PASSWORD)


class Outcome(Struct):
    """What came of a run."""

    seed: int
    violation: str | None
    fingerprint: str
    lines: list[str]
    entries: int
    """How many were acknowledged."""
    ledgers: int


class World:
    """See the module's docstring."""

    def __init__(self, run, nursery):
        self.run = run
        self.timeline = run.timeline
        self.nursery = nursery
        self.climate = climate_of(run.chance("climate"))
        self.disk_seconds = 0.001
        self.calm = False
        """Whether all faults have ended."""
        self.clients = {}
        self.network = VirtualNetwork(self.timeline, run.chance("network"))
        self.metadata = MetadataService(self.timeline, run.chance("metadata"))
        self.verdict = Verdict(run.trace, nursery.cancel_scope.cancel)
        run.timeline.failed = self.verdict.failed
        self.promises = Promises(run.trace, self.verdict)
        self.histories = Histories(run.trace, self.promises, self.verdict)
        self.promises.confirmed = self.histories.confirmed
        self.marks = None
        self.repairers = {}
        """The elections of those that run, by their names."""
        self.cluster = None
        self.bookies = []
        self.faults = None
        self._names = 0

    @property
    def elected(self):
        """Who believes to be the auditor."""
        return [name for name, each in self.repairers.items() if each.is_elected]

    async def go(self):
        """The whole run."""
        self.run.trace.note(f"seed {self.run.seed} {self.climate}")
        self.nursery.start_soon(self._thaw_at_the_end)
        self.cluster = await initialize_cluster(self.metadata.truth, "simulated")
        self.marks = Marks(self)
        self.histories.on_replaced = self.marks.replaced
        self.metadata.on_change = self._metadata_changed
        self.bookies = [SimulatedBookie(self, number) for number in range(self.climate.bookies)]
        for bookie in self.bookies:
            bookie.start()
        self.nursery.start_soon(self._restart)
        await UnderReplication(self.metadata.truth, self.cluster).prepare()
        for _ in range(self.climate.repairers):
            self.nursery.start_soon(self._run_again, "repairer", repair)
        if self.climate.stranger and self.climate.repairers and self.climate.checks:
            self.nursery.start_soon(self._run_again, "stranger", inspect)
        self.faults = faults = Faults(self)
        async with trio.open_nursery() as nursery:
            stories = Stories(self)
            for number in range(STORIES):
                nursery.start_soon(stories.tell, number)
            await faults.run(CALM_AT)
            nursery.cancel_scope.cancel()
        self.calm = True
        faults.end()
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                await LastChecks(self).run()
        except trio.TooSlowError:
            self.verdict.broken(f"it does not end: {PATIENCE_SECONDS} s after the last fault")
        self.nursery.cancel_scope.cancel()

    def _metadata_changed(self, path, before, after):
        self.histories.metadata_changed(path, before, after)
        self.marks.changed(path, before, after)

    async def _thaw_at_the_end(self):
        """Nothing ends on a frozen host."""
        try:
            await trio.sleep_forever()
        finally:
            self.timeline.thaw_all()

    def name(self, role):
        self._names += 1
        return f"{role}-{self._names}"

    async def _restart(self):
        """Start bookies that are down, sooner or later."""
        chance = self.run.chance("restarts")
        while True:
            await trio.sleep(0.05 if self.calm else chance.expovariate(3.0))
            down = [b for b in self.bookies if b.incarnation is None and not b.lost]
            if down:
                chance.choice(down).start()

    async def _run_again(self, role, process):
        """Have a process of AutoRecovery, one after the other."""
        while True:
            name = self.name(role)
            try:
                await process(self, name)
            except* StorageFailed as group:
                self.run.trace.note(f"{name} ends: {next(leaves(group))}")
            await trio.sleep(0.2)

    def check_notes(self, bookie):
        """What a bookie has noted of its ledgers, it knows."""
        if bookie.serving:
            self._check_fences(bookie)
            self._check_explicit_lacs(bookie)

    def _check_fences(self, bookie):
        """What a bookie has fenced is fenced: a late add of the old writer is refused."""
        digest = digests.digest_type(ledger_metadata.LedgerMetadata.CRC32C, PASSWORD)
        for fenced, ledger_id in sorted(self.promises.fenced):
            if fenced != bookie.bookie_id or self.histories.of(ledger_id).deleted:
                continue
            header = DigestHeader(ledger_id, 1_000_000, -1, 1)
            run = run_of(Add(ledger_id, 1_000_000, KEY, digests.seal_entry(digest, header, b"x")))
            try:
                bookie.incarnation.ledgers.add(run, KEY, lambda error: None)
            except Fenced:
                continue
            except BrokerError:
                continue
            self.verdict.broken(f"{fenced} has forgotten that ledger {ledger_id} is fenced")

    def _check_explicit_lacs(self, bookie):
        ledgers = bookie.incarnation.ledgers
        for (stored, ledger_id), lac in sorted(self.promises.explicit_lacs.items()):
            if stored == bookie.bookie_id and not self.histories.of(ledger_id).deleted:
                known = packed_lac(ledgers.known(ledger_id).explicit_lac)
                self.verdict.require(
                    known >= lac, f"{stored} has forgotten the explicit LAC {ledger_id}:{lac}"
                )


def simulated(seed):
    """One run, and what came of it."""
    logging.disable(logging.CRITICAL)
    try:
        return simulate(_run, seed)
    finally:
        logging.disable(logging.NOTSET)


async def _run(run: SeededRun):
    world, violation = None, None
    try:
        async with trio.open_nursery() as outer:
            outer.start_soon(_give_up)
            async with trio.open_nursery() as nursery:
                world = World(run, nursery)
                await world.go()
            outer.cancel_scope.cancel()
    except* Violation:
        pass
    except* Exception as group:  # noqa: BLE001 - whatever it is, nobody has expected it
        violation = f"an error that nobody expects: {next(leaves(group))!r}"
    entries = sum(history.acked + 1 for history in world.histories.ledgers.values())
    return Outcome(
        run.seed,
        world.verdict.violation or violation,
        run.trace.fingerprint,
        run.trace.lines,
        entries,
        len(world.histories.ledgers),
    )


async def _give_up():
    await trio.sleep(10 * PATIENCE_SECONDS)
    raise AssertionError("the run does not end")
