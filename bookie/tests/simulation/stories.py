"""What clients do in a run: stories, of which several are told at the same time.

A writer's ledger is closed by it, or its writer dies, or is taken for dead; then others recover the
ledger, perhaps several at a time, while readers look at it or follow it. Some ledgers are deleted
in the end, few of them before.
"""

import trio

from magnetar.bookie.tests.simulation.clients import Writing, delete, look, recover, running_client
from magnetar.bookie.tests.simulation.tails import follow

DELETED_EARLY = 0.05
"""The part of ledgers that are deleted while they are written or recovered."""
DELETED = 0.45
"""The part that is deleted at all."""


class Stories:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world

    async def tell(self, number):
        """Tell one story after the other."""
        chance = self._world.run.chance(f"stories {number}")
        while True:
            await self._story(chance)

    async def _story(self, chance):
        async with trio.open_nursery() as nursery:
            end = chance.random()
            writing = await nursery.start(self._write, chance)
            if writing is None:
                return
            ledger_id, history = writing.history.ledger_id, writing.history
            if chance.random() < 0.2:
                nursery.start_soon(look, self._world, self._world.name("reader"), ledger_id)
            if chance.random() < self._world.climate.tails:
                nursery.start_soon(follow, self._world, self._world.name("tail"), ledger_id)
            await trio.sleep(chance.expovariate(1 / self._world.climate.story_seconds))
            for _ in range(chance.choice((0, 1, 1, 1, 2))):
                name = self._world.name("recoverer")
                if self._world.climate.stock and chance.random() < 0.5:
                    await self._world.faults.lose_a_fence(writing, name)
                elif chance.random() < 0.7:
                    self._world.faults.ambush(writing.client.name, name, history.metadata)
                    writing.hurry()
                    await trio.sleep(chance.choice((0.0, 0.002, 0.01)))
                nursery.start_soon(self._recover, name, ledger_id)
                await trio.sleep(chance.choice((0.0, 0.01, 0.2)))
            if end < DELETED_EARLY:
                nursery.start_soon(delete, self._world, self._world.name("deleter"), ledger_id)
        if DELETED_EARLY <= end < DELETED:
            await delete(self._world, self._world.name("deleter"), ledger_id)

    async def _recover(self, name, ledger_id):
        with trio.move_on_after(4.0):
            await recover(self._world, name, ledger_id, mortal=True)

    async def _write(self, chance, *, task_status):
        """One writer's life."""
        writing = None
        async with running_client(self._world, self._world.name("writer")) as client:
            writing = Writing(client)
            if not await writing.create():
                task_status.started(None)
                return
            task_status.started(writing)
            end = chance.choice(("close", "die", "die with a change", "go on", "go on"))
            seconds = chance.expovariate(1 / self._world.climate.story_seconds)
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
        history.on_new_segment = lambda: self._world.timeline.call_in(pause, client.crash)
        strike = self._world.faults.strike
        self._world.timeline.call_in(seconds, lambda: strike(client.name, history.metadata))
