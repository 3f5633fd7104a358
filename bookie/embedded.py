"""One bookie inside this process, and the ledger client over it: the LedgerStore of one machine.

`open_embedded` opens the storage and identifies it; `running.py` starts and stops the parts.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from magnetar.bookie.client.catalog import ServerCatalog
from magnetar.bookie.client.store import LedgerClient
from magnetar.bookie.embedded_store import EmbeddedStore as EmbeddedStore
from magnetar.bookie.identification import identify, registered
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.running import RunningBookie, open_bookie
from magnetar.bookie.server.directories import claim
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.metadata_store import MetadataStore

if TYPE_CHECKING:
    from pathlib import Path


log = logging.getLogger(__name__)

EMBEDDED: Final = "/magnetar/embedded-bookies"
"""Leases of running bookies, by id."""


@asynccontextmanager
async def open_embedded(
    directory: Path,
    metadata: MetadataStore,
    settings: BookieSettings,
    *,
    on_fatal: Callable[[str], None],
    loop: EventLoop | None = None,
    machine: Machine | None = None,
) -> AsyncIterator[EmbeddedStore]:
    """Start the bookie below `directory`, replaying its journal; stop it cleanly at the end.

    `loop` is the server's event loop, which runs while this is open; without one, tasks watch the
    kernel's writes.

    `on_fatal` is called once, when storage has failed and the process should end: nothing is stored
    from then on. A bookie that cannot start (directory in use, foreign, newer, damaged) raises
    `StorageFailed` with a sentence for the operator. `machine` is this system by default.
    """
    machine = machine or system_machine()
    with claim(machine.disk, str(directory)) as directories:
        async with registered(metadata, settings.bookie_id, on_fatal):
            await identify(machine, directories, metadata, settings)
            catalog = ServerCatalog(metadata)
            async with open_bookie(
                machine, directories, catalog, settings, on_fatal, loop
            ) as running:
                yield EmbeddedStore(running, _client(running, metadata, settings))


def _client(
    running: RunningBookie, metadata: MetadataStore, settings: BookieSettings
) -> LedgerClient:
    machine, soon = running.storage.machine, running.flusher.call_soon
    return LedgerClient(settings.bookie_id, running.bookie, metadata, machine, soon)
