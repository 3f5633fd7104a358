"""Changes of ledger metadata: read, decide, write over the version that was read.

Apache's clients do the same (`MetadataUpdateLoop.java` of 4.18).

Invariant: a change is computed from exactly the value that it replaces. After a conflict the value
is read again and decided again; the decision may be that nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import BadVersion, Corrupted, LedgerNotFound, NotFound
from magnetar.core.ports.metadata_store import MetadataStore, Versioned


async def read(store: MetadataStore, ledger_id: int) -> LedgerMetadata:
    """The metadata of a ledger; `LedgerNotFound` if there is none."""
    ledger, _ = ledger_metadata.decode((await stored(store, ledger_id)).value)
    return ledger


async def stored(store: MetadataStore, ledger_id: int) -> Versioned:
    """The same, undecoded."""
    found = await store.get(ledger_metadata.path_of(ledger_id))
    if found is None:
        raise LedgerNotFound(f"there is no ledger {ledger_id}")
    return found


async def last_entries(store: MetadataStore) -> dict[int, int]:
    """All ledgers in the store, with the last entry of each closed one; -1 for the others."""
    found = {}
    waiting = [ledger_metadata.ROOT]
    while waiting:
        path = waiting.pop()
        for name in await store.children(path):
            below = f"{path}/{name}"
            ledger_id = ledger_metadata.id_of(below)
            if ledger_id is None and ledger_metadata.leads_to_ledgers(name):
                waiting.append(below)
            elif ledger_id is not None:
                found[ledger_id] = await _last_entry(store, ledger_id)
    return found


async def _last_entry(store: MetadataStore, ledger_id: int) -> int:
    try:
        ledger = await read(store, ledger_id)
    except (LedgerNotFound, Corrupted):
        return -1
    return int(ledger.lastEntryId) if ledger.state == ledger_metadata.CLOSED else -1


async def remove(store: MetadataStore, ledger_id: int) -> None:
    """Delete the metadata of a ledger unconditionally."""
    path = ledger_metadata.path_of(ledger_id)
    while (found := await store.get(path)) is not None:
        try:
            await store.delete(path, found.version)
        except (BadVersion, NotFound):
            continue
        return


async def change(
    store: MetadataStore, ledger_id: int, transform: Callable[[LedgerMetadata], bool]
) -> LedgerMetadata:
    """Apply `transform` in place; it returns False if nothing must be written, or raises."""
    while True:
        found = await stored(store, ledger_id)
        current, form = ledger_metadata.decode(found.value)
        if not transform(current):
            return current
        changed = ledger_metadata.encode(current, form)
        try:
            await store.put(ledger_metadata.path_of(ledger_id), changed, found.version)
        except BadVersion:
            continue
        return current
