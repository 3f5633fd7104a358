"""Simulated clients: the real ledger client of a cluster, each on a host of its own.

    writer      creates a ledger and appends; then closes it, or dies, or goes on although others
                recover it: a zombie
    recoverer   opens a ledger with recovery, again and again until that succeeds, and reads all of
                it; it may die in between
    reader      opens without recovery, and reads what is confirmed
    deleter     deletes a ledger, whatever others do with it

A client that dies does so in the middle of whatever it does; what it has sent goes on its way.
"""

from contextlib import asynccontextmanager

import trio

from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.store import (
    ClientMachine,
    open_cluster_ledgers,
)
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.tests.simulation.histories import PASSWORD
from magnetar.core.kernel.errors import BrokerError, Fenced, LedgerNotFound, StorageFailed
from magnetar.core.testing.simulation.virtual_network import HostNetwork

RETRY = (StorageFailed, Fenced, LedgerNotFound)
"""What a recovery may end with while there are faults: the store or too few bookies did not answer,
another recovery was quicker, or the list of ledgers is old.
"""
ENTRIES_MAX = 100
"""Of one ledger; more would only take longer."""
WINDOW = 40
"""Entries of one writer that are not acknowledged."""


class SimulatedClient:
    """One client process."""

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.host = world.timeline.host()
        self.chance = world.run.chance(name)
        self.store = None
        self.scope = trio.CancelScope()
        self.session = world.metadata.session(name, self.host)

    def note(self, text):
        self.world.run.trace.note(f"{self.name} {text}")

    def crash(self):
        """End the process, in the middle of whatever it does."""
        self.note("dies")
        self.scope.cancel()


@asynccontextmanager
async def running_client(world, name, explicit_lac_seconds=None):
    """A client that runs until the end of the block, or until it crashes."""
    client = SimulatedClient(world, name)
    world.clients[name] = client
    climate = world.climate
    machine = client.machine = ClientMachine(
        HostNetwork(world.network, name, client.host), world.run.clock, client.chance
    )
    settings = client.settings = QuorumSettings(
        striping=climate.striping,
        password=PASSWORD,
        speculative_read_seconds=0.5,
        quarantine_seconds=1.0,
        recovery_reads_ahead=climate.reads_ahead,
        explicit_lac_seconds=(
            climate.explicit_lac_seconds if explicit_lac_seconds is None else explicit_lac_seconds
        ),
    )
    connections = ConnectionSettings(
        connect_seconds=climate.answer_seconds,
        answer_seconds=climate.answer_seconds,
        expire_seconds=0.25,
        retry_seconds_min=0.02,
        retry_seconds_max=0.5,
    )
    try:
        with client.scope:
            while True:
                try:
                    opened = open_cluster_ledgers(
                        client.session, world.cluster, machine, settings, connections
                    )
                    async with opened as store:
                        client.store = store
                        yield client
                        return
                except* StorageFailed as group:
                    if client.store is not None:
                        raise
                    client.note(f"cannot begin: {group.exceptions[0]}")
                await trio.sleep(0.3)
    finally:
        world.clients.pop(name, None)
        client.host.thaw()
        client.session.end()
        world.network.cut(name)


class Writing:
    """One ledger's writer."""

    def __init__(self, client):
        self.client = client
        self.history = None
        self.writer = None
        self._chance = client.chance
        self._extra = 0
        self.over = self.paused = False
        self._bursts = client.world.climate.burst_seconds

    def limit(self):
        """How many entries it may have appended now."""
        return max(min(self.history.acked + WINDOW, ENTRIES_MAX), self._extra)

    def hurry(self):
        """Append much, whatever is acknowledged: others are about to recover the ledger."""
        self._extra = len(self.history.payloads) + WINDOW
        if self.client.name not in self.client.world.clients or self.over:
            return
        for _ in range(self._chance.choice((3, 10, 25))):
            if not self.history.failed:
                self._append()

    async def create(self):
        """Create a ledger; False if that takes too long."""
        with trio.move_on_after(10.0):
            while True:
                try:
                    self.writer = await self.client.store.create({})
                except StorageFailed as error:
                    self.client.note(f"cannot create: {error}")
                    await trio.sleep(0.2)
                    continue
                self.history = self.client.world.histories.of(self.writer.ledger_id)
                self.history.writer = self.writer
                return True
        return False

    async def append_on(self):
        """Append bursts of runs until the writer fails."""
        history, chance = self.history, self._chance
        while not history.failed and not self.client.world.calm:
            for _ in range(chance.choice((1, 1, 2, 5))):
                if self.paused or len(history.payloads) > self.limit():
                    break
                self._append()
            await trio.sleep(chance.expovariate(1 / self._bursts))

    def _append(self):
        history, chance = self.history, self._chance
        first = len(history.payloads)
        payloads = [
            b"%d:%d;" % (history.ledger_id, first + i) * chance.choice((1, 3, 30))
            for i in range(chance.choice((1, 1, 1, 2, 4)))
        ]
        history.append(self.writer, payloads)

    async def close(self):
        """Close the ledger, if that is possible."""
        history, self.over = self.history, True
        require = self.client.world.verdict.require
        try:
            info = await self.writer.close()
        except (Fenced, StorageFailed, LedgerNotFound) as error:
            self.client.note(f"cannot close {history.ledger_id}: {type(error).__name__}")
            require(history.deleted or not isinstance(error, LedgerNotFound), f"{error}")
            return
        require(info.closed, f"ledger {history.ledger_id} was closed and is not")
        require(
            info.last_entry_id >= history.acked,  # more if a run was stored in part
            f"{history.ledger_id} was closed at {info.last_entry_id}; {history.acked} was acked",
        )


async def recover(world, name, ledger_id, *, mortal):
    """Recover a ledger and read it; True if that was done."""
    history = world.histories.of(ledger_id)
    async with running_client(world, name) as client:
        if mortal and client.chance.random() < 0.3:
            world.timeline.call_in(client.chance.expovariate(2.0), client.crash)
        while True:
            try:
                reader = await client.store.open(ledger_id, recover=True)
                break
            except RETRY as error:
                client.note(f"cannot recover {ledger_id}: {error}")
                if history.deleted:
                    return True
                await trio.sleep(client.chance.expovariate(3.0))
        client.note(f"has recovered {ledger_id} to {reader.last_confirmed}")
        require = world.verdict.require
        require(history.closed, f"ledger {ledger_id} is still open")
        require(
            history.metadata.lastEntryId == reader.last_confirmed,
            f"ledger {ledger_id} ends at {history.metadata.lastEntryId}, and a recovery says "
            f"{reader.last_confirmed}",
        )
        expected = sum(map(len, history.payloads[: reader.last_confirmed + 1]))
        require(
            history.metadata.length == expected,
            f"ledger {ledger_id} has {expected} bytes, not {history.metadata.length}",
        )
        await read_all(client, history, reader)
        return True
    return False


async def read_all(client, history, reader):
    """Read a ledger to its end, or until it is deleted; errors are tried again while there are
    faults.
    """
    first = 0
    while first <= reader.last_confirmed and not history.deleted:
        try:
            found = await reader.read(first, reader.last_confirmed, 4096)
        except BrokerError as error:
            if not (history.deleted or isinstance(error, StorageFailed)):
                raise
            client.note(f"cannot read {history.ledger_id}:{first}: {error}")
            await trio.sleep(client.chance.expovariate(3.0))
            continue
        history.check_payloads(first, found)
        first += len(found)


async def delete(world, name, ledger_id):
    """Delete a ledger; who does may die, or give up, and nobody knows whether it is gone."""
    async with running_client(world, name) as client:
        if client.chance.random() < 0.3:
            world.timeline.call_in(client.chance.expovariate(100.0), client.crash)
        world.histories.of(ledger_id).deleting = True
        client.note(f"deletes {ledger_id}")
        with trio.move_on_after(2.0):
            while True:
                try:
                    await client.store.delete(ledger_id)
                    return
                except StorageFailed as error:
                    client.note(f"cannot delete {ledger_id}: {error}")
                    await trio.sleep(client.chance.expovariate(3.0))


async def look(world, name, ledger_id):
    """Read as far as a ledger is confirmed, without taking it from its writer."""
    async with running_client(world, name) as client:
        with trio.move_on_after(5.0):
            try:
                reader = await client.store.open(ledger_id, recover=False)
            except BrokerError as error:
                client.note(f"cannot look at {ledger_id}: {error}")
                return
            history = world.histories.of(ledger_id)
            client.note(f"sees {ledger_id} confirmed to {reader.last_confirmed}")
            if history.metadata.state != ledger_metadata.CLOSED:
                world.verdict.require(
                    reader.last_confirmed <= history.confirmed,
                    f"ledger {ledger_id} is said to be confirmed to {reader.last_confirmed}, and "
                    f"its writer knows {history.confirmed}",
                )
            await read_all(client, history, reader)
