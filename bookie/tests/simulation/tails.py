"""Clients that follow a ledger while its writer lives, over version 3 of the protocol.

    long poll     the LAC once it is beyond the one that the client knows, and the entry behind that
    explicit LAC  what the writer told when no entry followed

What bookies answer is judged where it is packed (`promises.py`); here, what comes with it. In the
end, when nothing goes wrong, `hear_in_the_end` requires that polls are answered in time: when the
LAC moves on, with an entry or explicitly, and when the ledger is fenced.
"""

import trio

from magnetar.bookie.format.digests import open_lac
from magnetar.bookie.rpc.messages import LAST_ENTRY, Lac, Read, ReadEntry, ReadLac, Status
from magnetar.bookie.tests.simulation.clients import Writing, recover, running_client
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted

TAIL_SECONDS = 4.0
POLL_SECONDS = 10
HEARD_SECONDS = 2.0
"""Within so long a poll hears of what it waits for, when nothing goes wrong."""


async def follow(world, name, ledger_id):
    """Follow a ledger for a while."""
    async with running_client(world, name) as client:
        with trio.move_on_after(TAIL_SECONDS):
            await Tail(client, world.histories.of(ledger_id)).run()


async def ask(client, bookie_id, request, seconds=0.0):
    """What a bookie answers; `seconds` more may pass before that."""
    answer = Completion()
    client.store._services.connections.to(bookie_id, 3).ask(request, answer.done, seconds)
    return await answer.result()


class Tail:
    """See the module's docstring."""

    def __init__(self, client, history):
        self._client = client
        self._history = history
        self._known = -1
        """The last entry that was read."""
        self._require = client.world.verdict.require

    async def run(self):
        chance, history = self._client.chance, self._history
        while not history.deleted:
            _, ensemble = history.view().last_segment
            bookie_id = chance.choice(ensemble)
            look = self._poll if chance.random() < 0.8 else self._ask_for_lac
            try:
                await look(bookie_id)
            except BrokerError as error:
                self._client.note(f"does not hear of {history.ledger_id}: {error}")
                await trio.sleep(chance.expovariate(20.0))

    async def _poll(self, bookie_id):
        history = self._history
        milliseconds = self._client.chance.choice((0, 20, 100, 500))
        request = poll(history.ledger_id, self._known, milliseconds)
        response = await ask(self._client, bookie_id, request, milliseconds / 1000)
        if not isinstance(response, ReadEntry) or response.status is not Status.OK:
            await trio.sleep(0.02)
            return
        if response.entry is None:
            if response.lac > self._known:  # of this entry another bookie has a replica
                await self._read(self._known + 1)
            return
        self._require(
            response.entry_id == self._known + 1 <= response.lac,
            f"a poll behind {self._known} gives {response.entry_id}, with the LAC {response.lac}",
        )
        self._open(bookie_id, response)

    async def _read(self, entry_id):
        """Read one entry from a bookie that has it."""
        view = self._history.view()
        ensemble, _ = view.segment_of(entry_id)
        bookie_id = ensemble[self._client.chance.choice(view.striping.write_set(entry_id))]
        response = await ask(self._client, bookie_id, Read(view.ledger_id, entry_id))
        if isinstance(response, ReadEntry) and response.status is Status.OK:
            self._open(bookie_id, response)

    def _open(self, bookie_id, response):
        history = self._history
        try:
            payload = history.view().open_entry(response.entry_id, response.entry)
        except Corrupted as error:
            damaged = bookie_id in self._client.world.promises.damaged
            self._require(damaged, f"{bookie_id} sends damage: {error}")
            return
        history.check_payloads(response.entry_id, [payload])
        self._known = response.entry_id
        self._client.note(f"has heard {history.ledger_id}:{self._known}")

    async def _ask_for_lac(self, bookie_id):
        view = self._history.view()
        response = await ask(self._client, bookie_id, ReadLac(view.ledger_id))
        if isinstance(response, Lac) and response.packet:
            lac = open_lac(view.digest, view.ledger_id, response.packet)
            self._client.note(f"hears the explicit LAC {view.ledger_id}:{lac}")


def poll(ledger_id, known, milliseconds):
    """A long poll."""
    return Read(ledger_id, LAST_ENTRY, previous_lac=known, timeout_ms=milliseconds, piggyback=True)


async def hear_in_the_end(world):
    """Require that polls of a new ledger are answered in time."""
    async with running_client(world, world.name("tail"), explicit_lac_seconds=0.0) as client:
        writing = Writing(client)
        world.verdict.require(await writing.create(), "no ledger can be created in the end")
        history, count = writing.history, world.climate.striping.ensemble

        async def append():
            """Give each bookie of the ensemble an entry."""
            last = history.append(writing.writer, [b"a"] * count)
            while history.acked < last:
                world.verdict.require(not history.failed, "an add fails in the end")
                await trio.sleep(0.01)

        async def tell():
            writing.writer.tell_lac()

        async def fence():
            await recover(world, world.name("auditor"), history.ledger_id, mortal=False)

        await append()
        await _hear(client, history, -1, append, count - 1)
        await _hear(client, history, 2 * count - 2, tell, 2 * count - 1)
        await _hear(client, history, 2 * count - 1, fence, 2 * count - 1)


async def _hear(client, history, known, act, heard):
    """Require that each bookie answers a poll, once something is done, with that LAC."""
    ledger_id, waiting = history.ledger_id, set(history.view().last_segment[1])
    all_heard = trio.Event()

    async def wait(bookie_id):
        request = poll(ledger_id, known, 1000 * POLL_SECONDS)
        response = await ask(client, bookie_id, request, POLL_SECONDS)
        client.world.verdict.require(
            isinstance(response, ReadEntry) and response.lac == heard,
            f"{bookie_id} tells {response!r:.100}, and the LAC of {ledger_id} is {heard}",
        )
        waiting.discard(bookie_id)
        if not waiting:
            all_heard.set()

    await trio.sleep(0.5)  # those that were not waited for have got all entries, too
    async with trio.open_nursery() as nursery:
        for bookie_id in sorted(waiting):
            nursery.start_soon(wait, bookie_id)
        await trio.sleep(0.5)
        client.world.verdict.require(
            len(waiting) == client.world.climate.striping.ensemble,
            f"ledger {ledger_id} is at {known}, and a poll is answered",
        )
        with trio.move_on_after(HEARD_SECONDS) as scope:
            await act()
            await all_heard.wait()
        client.world.verdict.require(
            not scope.cancelled_caught,
            f"{sorted(waiting)} let a poll of ledger {ledger_id} wait, behind {known}",
        )
