"""One run: bookies, a metadata store, clients and faults, all from one seed.

    0 to `CALM_AT`      stories are told at the same time, while things go wrong
    then                all faults end; within `PATIENCE_SECONDS` every ledger is recovered and
                        read, a new ledger is written, and what bookies have is compared with what
                        they have promised

What a story is: a writer's ledger is closed by it, or its writer dies, or is taken for dead; then
others recover the ledger, perhaps several at a time, while readers look at it.
"""

import logging

import trio
from msgspec import Struct

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.requests.session import run_of
from magnetar.bookie.rpc.messages import Add
from magnetar.bookie.tests.simulation.bookies import SimulatedBookie, leaves
from magnetar.bookie.tests.simulation.clients import (
    Writing,
    look,
    recover,
    repair,
    running_client,
)
from magnetar.bookie.tests.simulation.faults import Faults
from magnetar.bookie.tests.simulation.histories import PASSWORD, Histories
from magnetar.bookie.tests.simulation.promises import Promises
from magnetar.bookie.tests.simulation.verdict import Verdict, Violation
from magnetar.core.kernel.errors import (
    BrokerError,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    StorageFailed,
)
from magnetar.core.testing.simulation.seeded_run import SeededRun, simulate
from magnetar.core.testing.simulation.virtual_metadata import MetadataService
from magnetar.core.testing.simulation.virtual_network import VirtualNetwork

CALM_AT = 4.0
PATIENCE_SECONDS = 60.0
STORIES = 4
SIZES = [
    *[Striping(3, 3, 2)] * 4,
    *[Striping(3, 2, 2)] * 2,
    *[Striping(4, 3, 2)] * 2,
    Striping(5, 3, 2),
    Striping(3, 3, 3),
    Striping(4, 4, 3),
    Striping(2, 2, 2),
    Striping(2, 2, 1),
]
KEY = digests.master_key(PASSWORD)


class Climate(Struct):
    """How a run is, from its seed."""

    striping: Striping
    bookies: int
    faults_per_second: float
    burst_seconds: float
    """Between two bursts of appends."""
    story_seconds: float
    """How long a writer has its ledger to itself."""
    answer_seconds: float
    reads_ahead: int
    down_max: int
    damage: bool
    repair: bool
    """Whether AutoRecovery runs."""
    slow_disks: bool
    """Whether disks are slow for a while, so that answers come when nobody waits for them."""


def climate_of(chance):
    striping = chance.choice(SIZES)
    damage = chance.random() < 0.4
    spare = chance.choice((0, 1, 1, 2))
    if damage:  # those that are lost must have substitutes, else nothing can be stored again
        spare = max(spare, striping.ack - 1)
    return Climate(
        striping,
        bookies=striping.ensemble + spare,
        faults_per_second=chance.choice((3.0, 8.0, 15.0)),
        burst_seconds=chance.choice((0.01, 0.03, 0.1)),
        story_seconds=chance.choice((0.03, 0.1, 0.3, 1.0)),
        answer_seconds=chance.choice((0.5, 1.5)),
        reads_ahead=chance.choice((2, 4, 8, 64)),
        down_max=chance.choice((1, 2, 3)),
        damage=damage,
        repair=chance.random() < 0.5,
        slow_disks=chance.random() < 0.2,
    )


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
        self.metadata.on_change = self.histories.metadata_changed
        self.cluster = None
        self.bookies = []
        self.faults = None
        self._names = 0

    async def go(self):
        """The whole run."""
        self.run.trace.note(f"seed {self.run.seed} {self.climate}")
        self.nursery.start_soon(self._thaw_at_the_end)
        self.cluster = await initialize_cluster(self.metadata.truth, "simulated")
        self.bookies = [SimulatedBookie(self, number) for number in range(self.climate.bookies)]
        for bookie in self.bookies:
            bookie.start()
        self.nursery.start_soon(self._restart)
        if self.climate.repair:
            await UnderReplication(self.metadata.truth, self.cluster).prepare()
            self.nursery.start_soon(self._repair)
        self.faults = faults = Faults(self)
        async with trio.open_nursery() as nursery:
            for number in range(STORIES):
                nursery.start_soon(self._stories, number)
            if self.climate.slow_disks:
                nursery.start_soon(faults.slow_disks)
            await faults.run(CALM_AT)
            nursery.cancel_scope.cancel()
        self.calm = True
        faults.end()
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                await self._check_in_the_end()
        except trio.TooSlowError:
            self.verdict.broken(f"it does not end: {PATIENCE_SECONDS} s after the last fault")
        self.nursery.cancel_scope.cancel()

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

    async def _repair(self):
        """Have an auditor and a replication worker, one after the other."""
        while True:
            name = self.name("repairer")
            try:
                await repair(self, name)
            except* StorageFailed as group:
                self.run.trace.note(f"{name} ends: {next(leaves(group))}")
            await trio.sleep(0.2)

    # -- stories ------------------------------------------------------------------------------

    async def _stories(self, number):
        chance = self.run.chance(f"stories {number}")
        while True:
            await self._story(chance)

    async def _story(self, chance):
        async with trio.open_nursery() as nursery:
            writing = await nursery.start(self._write, chance)
            if writing is None:
                return
            ledger_id, history = writing.history.ledger_id, writing.history
            if chance.random() < 0.2:
                nursery.start_soon(look, self, self.name("reader"), ledger_id)
            await trio.sleep(chance.expovariate(1 / self.climate.story_seconds))
            for _ in range(chance.choice((0, 1, 1, 1, 2))):
                name = self.name("recoverer")
                if chance.random() < 0.7:
                    self.faults.ambush(writing.client.name, name, history.metadata)
                    writing.hurry()
                    await trio.sleep(chance.choice((0.0, 0.002, 0.01)))
                nursery.start_soon(self._recover, name, ledger_id)
                await trio.sleep(chance.choice((0.0, 0.01, 0.2)))

    async def _recover(self, name, ledger_id):
        with trio.move_on_after(4.0):
            await recover(self, name, ledger_id, mortal=True)

    async def _write(self, chance, *, task_status):
        """One writer's life."""
        writing = None
        async with running_client(self, self.name("writer")) as client:
            writing = Writing(client)
            if not await writing.create():
                task_status.started(None)
                return
            task_status.started(writing)
            end = chance.choice(("close", "die", "die with a change", "go on", "go on"))
            seconds = chance.expovariate(1 / self.climate.story_seconds)
            if end == "die with a change":
                self._die_with_a_change(writing, chance, seconds)
            with trio.move_on_after(seconds if end in ("close", "die") else 2.0):
                await writing.append_on()
            if end == "die":
                client.crash()
            await writing.close()
        if writing is None or writing.history is None:
            task_status.started(None)

    def _die_with_a_change(self, writing, chance, seconds):
        """Have the writer change its ensemble, and die when that is written: the last segment is
        nearly empty.
        """
        client, history = writing.client, writing.history
        pause = chance.choice((0.0, 0.002, 0.01))
        history.on_new_segment = lambda: self.timeline.call_in(pause, client.crash)
        self.timeline.call_in(seconds, lambda: self.faults.strike(client.name, history.metadata))

    # -- the end ------------------------------------------------------------------------------

    async def _check_in_the_end(self):
        while not all(bookie.serving or bookie.lost for bookie in self.bookies):
            if self._hopeless():
                break
            await trio.sleep(0.1)
        async with trio.open_nursery() as nursery:
            for ledger_id in list(self.histories.ledgers):
                nursery.start_soon(self._recover_in_the_end, ledger_id)
        for history in self.histories.ledgers.values():
            await self._check_replicas(history)
        for bookie in self.bookies:
            self.check_fences(bookie)
        await self._write_in_the_end()

    def _hopeless(self):
        """Whether only bookies are down that are damaged: they may refuse to start."""
        down = [bookie for bookie in self.bookies if not (bookie.serving or bookie.lost)]
        return (
            all(bookie.bookie_id in self.promises.damaged for bookie in down)
            and trio.current_time() > CALM_AT + 10.0
        )

    async def _recover_in_the_end(self, ledger_id):
        await recover(self, self.name("auditor"), ledger_id, mortal=False)

    async def _write_in_the_end(self):
        """Adds succeed again, if there are bookies enough."""
        serving = sum(bookie.serving for bookie in self.bookies)
        if serving < self.climate.striping.ensemble:
            return
        async with running_client(self, self.name("writer")) as client:
            writing = Writing(client)
            self.verdict.require(await writing.create(), "no ledger can be created in the end")
            last = writing.history.append(writing.writer, [b"x", b"y", b"z"])
            while writing.history.acked < last:
                self.verdict.require(not writing.history.failed, "an add fails in the end")
                await trio.sleep(0.01)
            await writing.close()

    async def _check_replicas(self, history):
        """Each committed entry is at an ack quorum, or was there before a disk was lost."""
        view, by_id = history.view(), {bookie.bookie_id: bookie for bookie in self.bookies}
        for entry_id in range(history.metadata.lastEntryId + 1):
            ensemble, _ = view.segment_of(entry_id)
            found = 0
            for position in view.striping.write_set(entry_id):
                bookie = by_id[ensemble[position]]
                promised = (bookie.bookie_id, history.ledger_id, entry_id) in self.promises.stored
                has = promised
                if bookie.serving:
                    has = await self._has(bookie, view, entry_id, promised)
                found += has
            self.verdict.require(
                found >= view.striping.ack,
                f"{history.ledger_id}:{entry_id} is at {found} bookies only",
            )

    async def _has(self, bookie, view, entry_id, promised):
        """Whether a bookie has an entry, or has had it and knows that."""
        ledgers, name = bookie.incarnation.ledgers, f"{view.ledger_id}:{entry_id}"
        try:
            entry = ledgers.entry_at_once(view.ledger_id, entry_id)
            if entry is None:
                entry = await ledgers.entry(view.ledger_id, entry_id)
            view.open_entry(entry_id, entry)
        except (EntryNotFound, LedgerNotFound):
            unsure = promised and ledgers.known(view.ledger_id).limbo
            self.verdict.require(
                unsure or not promised, f"{bookie.bookie_id} has lost {name} and denies it"
            )
            return unsure
        except StorageFailed as error:
            damaged = bookie.bookie_id in self.promises.damaged
            self.verdict.require(damaged, f"{bookie.bookie_id} cannot read {name}: {error}")
            return promised
        return True

    def check_fences(self, bookie):
        """What a bookie has fenced is fenced: a late add of the old writer is refused."""
        if not bookie.serving:
            return
        digest = digests.digest_type(ledger_metadata.LedgerMetadata.CRC32C, PASSWORD)
        for fenced, ledger_id in sorted(self.promises.fenced):
            if fenced != bookie.bookie_id:
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
