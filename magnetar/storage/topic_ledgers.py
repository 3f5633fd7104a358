"""Whether a BookKeeper cluster has ledgers that topics are stored in, by their own lists.

The metadata of topics do not say in which cluster their ledgers are, until a gateway has noted it
(`instance.py`). A gateway that starts over those of Pulsar's brokers can only look: with a cluster
that has none of the ledgers that topics name, it would give up all of them.

    a ledger that a topic names      tells
    is there, and names the topic    that this is the cluster: nothing else is looked at
    is there, and names no owner     the same (`core/ledger/ledger_owner.py`)
    is there, and another's          that it is not: ids begin at 0 in each cluster
    is not there                     that it is not
    is offloaded                     nothing: its bookies may have dropped it

So one ledger that is there decides for the cluster, whatever else is lost; against it decide only
all that were looked at. What cannot be read tells nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import ledger_metadata
from magnetar.core.kernel.errors import Corrupted, LedgerNotFound, Unsupported
from magnetar.core.ledger.formats import LedgerEntryInfo, decode_managed_ledger
from magnetar.core.ports.metadata_store import MetadataStore

ROOT: Final = "/managed-ledgers"
LEVELS: Final = 4
"""Tenant, namespace, domain, topic."""
NODES_MAX: Final = 2000
"""How many are read before it is enough."""
TOPICS_MAX: Final = 100
"""How many topics with no ledger in the cluster prove that it is not theirs."""
LEDGERS_OF_A_TOPIC: Final = 3
"""How many are looked at, from the newest on."""


class MissingLedger(Struct, frozen=True):
    """A ledger that a topic names and the cluster does not have."""

    topic: str
    """The name of its managed ledger."""
    ledger_id: int


class TopicLedgers:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, ledgers: ClusterLedgers) -> None:
        self._metadata = metadata
        self._ledgers = ledgers

    async def missing(self) -> MissingLedger | None:
        """One that is missing, if none of them is there; None if one is, or none is named."""
        waiting = [""]
        example: MissingLedger | None = None
        topics = nodes = 0
        while waiting and topics < TOPICS_MAX and nodes < NODES_MAX:
            name = waiting.pop()
            nodes += 1
            if name.count("/") < LEVELS:
                names = await self._metadata.children(ROOT + name)
                waiting += [f"{name}/{each}" for each in reversed(names)]
                continue
            named = await self._named(name[1:])
            for ledger_id in named:
                if await self._may_be_of(name[1:], ledger_id):
                    return None
            if named:
                topics += 1
                example = example or MissingLedger(name[1:], named[0])
        return example

    async def _named(self, topic: str) -> list[int]:
        """The newest ledgers that a topic has only on bookies."""
        found = await self._metadata.get(f"{ROOT}/{topic}")
        try:
            listed = decode_managed_ledger(found.value).ledgers if found is not None else ()
        except Corrupted:
            return []
        return _newest([each for each in listed if not each.offload_context])

    async def _may_be_of(self, topic: str, ledger_id: int) -> bool:
        try:
            metadata = await self._ledgers.read(ledger_id)
        except LedgerNotFound:
            return False
        except (Corrupted, Unsupported):
            return True
        owners = [m.value for m in metadata.customMetadata if m.key == ledger_metadata.OWNER]
        return not owners or topic.encode() in owners


def _newest(listed: list[LedgerEntryInfo]) -> list[int]:
    return [each.ledger_id for each in reversed(listed)][:LEDGERS_OF_A_TOPIC]
