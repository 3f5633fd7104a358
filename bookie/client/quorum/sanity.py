"""A test of one bookie: it stores entries of a ledger of its own, and returns them.

`bookiesanity` of Apache's shell does the same with the bookie of its configuration
(`SanityTestCommand.java` of BookKeeper 4.18), and leaves the ledger, which is deleted here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from magnetar.bookie.client.quorum.ensemble_adds import ClientServices
from magnetar.bookie.client.quorum.placement import DEFAULT_RACK, Placement
from magnetar.bookie.client.quorum.store import ClientMachine, ClusterClient, ClusterLedgerStore
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.cluster.ledger_id_generator import LedgerIdGenerator
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.ports.ledger_store import LedgerStore

READ_BYTES = 1024 * 1024


def ledgers_of_one(
    client: ClusterClient, ids: LedgerIdGenerator, machine: ClientMachine, bookie_id: str
) -> ClusterLedgerStore:
    """A store whose new ledgers are on one bookie, whether it is registered or not."""
    placement = Placement(
        lambda: [bookie_id], lambda _: DEFAULT_RACK, lambda _: False, machine.chance
    )
    shared, settings = client.services, client.settings
    services = ClientServices(
        shared.connections, placement, shared.nursery, settings.unconfirmed_bytes_max
    )
    alone = replace(settings, striping=Striping(1, 1, 1))
    return ClusterLedgerStore(services, client.ledgers, ids, client.bookies, machine, alone)


async def write_and_read(
    ledgers: LedgerStore, count: int, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Write so many entries to a new ledger, and read them; its id. It is deleted in any case."""
    payloads = [b"entry-%d" % number for number in range(count)]
    writer = await ledgers.create({})
    try:
        for payload in payloads:
            completion: Completion[None] = Completion()
            writer.append([payload], completion.done)
            await completion.result()
            progress(1)
        await writer.close()
        reader = await ledgers.open(writer.ledger_id, recover=False)
        found: list[bytes] = []
        while len(found) < count:
            found += await reader.read(len(found), count - 1, READ_BYTES)
        if found != payloads:
            raise Corrupted("it has returned other entries than were stored")
    finally:
        with suppress(BrokerError):
            await ledgers.delete(writer.ledger_id)
    return writer.ledger_id
