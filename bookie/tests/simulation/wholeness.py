"""What AutoRecovery owes a cluster in which nothing goes wrong any more.

Within `WHOLE_SECONDS`, if as many bookies run as an ensemble has:

    no mark or lock is left   but of ledgers that are open: where their bookies merely lag, it is
                              for their writers to close them (`ledger_repair.py`)
    bookies                   all that a ledger's metadata name run, also for an open one
    entries                   where the auditor asks bookies that run, each has the first and the
                              last of what it should have of each closed fragment; and all
                              between them where it reads a percentage of those, too (it reads
                              others each time). Without, a hole is found by nobody, as with
                              Apache's default
"""

from functools import partial

from magnetar.bookie.cluster.under_replication import ROOT, under_replicated
from magnetar.bookie.tests.simulation.histories import segments
from magnetar.core.kernel.errors import BrokerError

WHOLE_SECONDS = 30.0


class Wholeness:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world

    async def wait(self):
        """Wait until everything is whole; it is a violation if that takes too long."""
        world = self._world
        running = {bookie.bookie_id: bookie for bookie in world.bookies if bookie.serving}
        if not world.climate.repairers or len(running) < world.climate.striping.ensemble:
            return
        await world.verdict.require_soon(partial(self._lack, running), WHOLE_SECONDS)
        if world.climate.checks and world.climate.verification_percentage:
            damaged = [running[each] for each in sorted(world.promises.damaged) if each in running]
            await world.verdict.require_soon(partial(self._holes, damaged), WHOLE_SECONDS)
        world.run.trace.note("everything is whole")

    async def _lack(self, running):
        """Something that is not whole yet; None if everything is."""
        truth = self._world.metadata.truth
        marked = await under_replicated(truth, self._world.cluster)
        for each in marked:
            history = self._world.histories.of(each.ledger_id)
            if history.closed or history.deleted:
                return f"ledger {each.ledger_id} is marked still, for {each.missing}"
        locks = await truth.children(self._world.cluster.path(ROOT, "locks"))
        if locks and not marked:
            return f"the locks {locks} are held still"
        return await self._lack_of_ledgers(running)

    async def _lack_of_ledgers(self, running):
        for history in self._world.histories.existing():
            if (lack := await self._lack_of(history, running)) is not None:
                return lack
        return None

    async def _lack_of(self, history, running):
        name = f"ledger {history.ledger_id}"
        for first, members in segments(history.metadata):
            for position, member in enumerate(members):
                if member not in running:
                    return f"{name} has {member} from {first} on, which does not run"
                if not self._world.climate.checks:
                    continue
                entries = self._entries(history, first, position)
                for entry_id in {*entries[:1], *entries[-1:]}:
                    if not await self._has(running[member], history, entry_id):
                        return f"{name} lacks {entry_id} at {member}"
        return None

    async def _holes(self, damaged):
        """An entry that a damaged bookie does not have. Others have lost nothing."""
        for history in self._world.histories.existing():
            for first, members in segments(history.metadata):
                for bookie in damaged:
                    if bookie.bookie_id not in members:
                        continue
                    position = members.index(bookie.bookie_id)
                    for entry_id in self._entries(history, first, position):
                        if not await self._has(bookie, history, entry_id):
                            return f"{bookie.name} lacks {history.ledger_id}:{entry_id}"
        return None

    def _entries(self, history, first, position):
        """What a bookie should have of a fragment, if that is closed."""
        view = history.view()
        _, end = view.segment_of(first)
        if end is None and not history.closed:
            return []
        last = history.metadata.lastEntryId if end is None else end
        return [i for i in range(first, last + 1) if view.striping.has(position, i)]

    async def _has(self, bookie, history, entry_id):
        try:
            await bookie.read(history.view(), entry_id)
        except BrokerError:
            return False
        return True
