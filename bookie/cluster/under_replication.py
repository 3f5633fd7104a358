"""The ledgers that an auditor has found to lack replicas, and that wait for a replicator.

    underreplication/ledgers/HHHH/HHHH/HHHH/HHHH/urLNNNNNNNNNN

The id of a ledger stands there twice: as four groups of four hexadecimal digits, and in decimal.
The value is text protobuf, `replica: "BOOKIE"` for each bookie that is lost, and perhaps `ctime`
in milliseconds (`ZkLedgerUnderreplicationManager.java` of BookKeeper 4.18).
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.core.ports.metadata_store import MetadataStore

LEVELS: Final = 4
_NODE: Final = re.compile(r"urL(\d{10,19})")
_REPLICA: Final = re.compile(r'replica:\s*"([^"]*)"')
_CREATED: Final = re.compile(r"ctime:\s*(\d+)")


class UnderReplicatedLedger(Struct, frozen=True):
    """A ledger, and the bookies that should have it and do not."""

    ledger_id: int
    missing: tuple[str, ...]
    found_ms: int | None = None
    """When it was found."""


async def under_replicated(
    store: MetadataStore, cluster: BookKeeperCluster
) -> list[UnderReplicatedLedger]:
    """All of them, in the order of their ids; those that are repaired meanwhile may be missing."""
    found: list[UnderReplicatedLedger] = []
    await _walk(store, cluster.path("underreplication", "ledgers"), 0, found)
    return sorted(found, key=lambda each: each.ledger_id)


async def _walk(
    store: MetadataStore, path: str, level: int, found: list[UnderReplicatedLedger]
) -> None:
    for name in await store.children(path):
        if level < LEVELS:
            await _walk(store, f"{path}/{name}", level + 1, found)
        elif match := _NODE.fullmatch(name):
            stored = await store.get(f"{path}/{name}")
            if stored is not None:
                found.append(_decode(int(match[1]), stored.value.decode(errors="replace")))


def _decode(ledger_id: int, text: str) -> UnderReplicatedLedger:
    created = _CREATED.search(text)
    return UnderReplicatedLedger(
        ledger_id, tuple(_REPLICA.findall(text)), int(created[1]) if created else None
    )
