"""What must be true in the end, when nothing goes wrong any more.

Deleted ledgers leave the disks. Every other ledger is recovered and read, new ones are written and
followed, and what bookies have is compared with what they have promised. Where AutoRecovery runs,
it has done its work before that, and after it.
"""

import trio

from magnetar.bookie.tests.simulation.clients import Writing, recover, running_client
from magnetar.bookie.tests.simulation.climate import CALM_AT
from magnetar.bookie.tests.simulation.garbage import Garbage
from magnetar.bookie.tests.simulation.sessions import Sessions
from magnetar.bookie.tests.simulation.tails import hear_in_the_end
from magnetar.bookie.tests.simulation.wholeness import Wholeness
from magnetar.core.kernel.errors import EntryNotFound, LedgerNotFound, StorageFailed

OPERATORS_SECONDS = 10.0


class LastChecks:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world

    async def run(self):
        """Make all of them."""
        while not all(bookie.serving or bookie.lost for bookie in self._world.bookies):
            if self._hopeless():
                break
            await trio.sleep(0.1)
        await self._world.verdict.require_soon(self._operators, OPERATORS_SECONDS)
        await Sessions(self._world).wait()
        wholeness = Wholeness(self._world)
        await wholeness.wait()
        async with trio.open_nursery() as nursery:
            for history in self._world.histories.existing():
                nursery.start_soon(self._recover_in_the_end, history.ledger_id)
        await Garbage(self._world).wait()
        for history in self._world.histories.existing():
            await self._check_replicas(history)
        for bookie in self._world.bookies:
            self._world.check_notes(bookie)
        if self._has_enough():
            await self._write_in_the_end()
            await hear_in_the_end(self._world)
        await wholeness.wait()

    def _hopeless(self):
        """Whether only bookies are down that are damaged: they may refuse to start."""
        down = [bookie for bookie in self._world.bookies if not (bookie.serving or bookie.lost)]
        return (
            all(bookie.bookie_id in self._world.promises.damaged for bookie in down)
            and trio.current_time() > CALM_AT + 10.0
        )

    async def _operators(self):
        """Those who are at work still: they may take any ledger from its writer."""
        names = [name for name in self._world.clients if name.startswith("operator")]
        return f"{names} are at work" if names else None

    def _has_enough(self):
        """Whether there are bookies enough for a new ledger."""
        serving = sum(bookie.serving for bookie in self._world.bookies)
        return serving >= self._world.climate.striping.ensemble

    async def _recover_in_the_end(self, ledger_id):
        await recover(self._world, self._world.name("auditor"), ledger_id, mortal=False)

    async def _write_in_the_end(self):
        """Adds succeed again."""
        async with running_client(self._world, self._world.name("writer")) as client:
            writing = Writing(client)
            created = await writing.create()
            self._world.verdict.require(created, "no ledger can be created in the end")
            last = writing.history.append(writing.writer, [b"x", b"y", b"z"])
            while writing.history.acked < last:
                self._world.verdict.require(not writing.history.failed, "an add fails in the end")
                await trio.sleep(0.01)
            await writing.close()

    async def _check_replicas(self, history):
        """Each committed entry is at an ack quorum, or was there before a disk was lost."""
        view, by_id = history.view(), {bookie.bookie_id: bookie for bookie in self._world.bookies}
        for entry_id in range(history.metadata.lastEntryId + 1):
            ensemble, _ = view.segment_of(entry_id)
            found = 0
            for position in view.striping.write_set(entry_id):
                bookie = by_id[ensemble[position]]
                key = bookie.bookie_id, history.ledger_id, entry_id
                promised = key in self._world.promises.stored
                has = promised
                if bookie.serving:
                    has = await self._has(bookie, view, entry_id, promised)
                found += has
            self._world.verdict.require(
                found >= view.striping.ack,
                f"{history.ledger_id}:{entry_id} is at {found} bookies only",
            )

    async def _has(self, bookie, view, entry_id, promised):
        """Whether a bookie has an entry, or has had it and knows that."""
        require, name = self._world.verdict.require, f"{view.ledger_id}:{entry_id}"
        try:
            await bookie.read(view, entry_id)
        except (EntryNotFound, LedgerNotFound) as error:
            unsure = promised and isinstance(error, EntryNotFound)
            unsure = unsure and bookie.incarnation.ledgers.known(view.ledger_id).limbo
            require(unsure or not promised, f"{bookie.bookie_id} has lost {name} and denies it")
            return unsure
        except StorageFailed as error:
            damaged = bookie.bookie_id in self._world.promises.damaged
            require(damaged, f"{bookie.bookie_id} cannot read {name}: {error}")
            return promised
        return True
