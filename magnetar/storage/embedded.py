"""Storage within this process: metadata, and the bookie whose ledgers it names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie_identity import explained_damage
from magnetar.core.link.front import Door, Front
from magnetar.core.link.loop import Link
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.measures import parts as measures
from magnetar.process.data_directory import BOOKIE, METADATA
from magnetar.settings import Settings
from magnetar.shared_settings import bookie_settings, request_limits
from magnetar.storage.embedded_places import EmbeddedPlaces
from magnetar.storage.failure import ended_by_failure
from magnetar.storage.opened import OpenedStorage

if TYPE_CHECKING:
    from magnetar.bookie.requests.authentication import BookieAccess


@asynccontextmanager
async def open_embedded_storage(settings: Settings, link: Link) -> AsyncIterator[OpenedStorage]:
    """See `opened.py`."""
    folder = Path(settings.storage.data_dir)
    async with ended_by_failure("server") as fail, AsyncExitStack() as opened:
        bookie = bookie_settings(settings)
        with explained_damage(folder, METADATA):
            metadata = await opened.enter_async_context(
                open_metadata(folder / METADATA, on_fatal=fail, calls=link.thread_calls)
            )
        with explained_damage(folder, BOOKIE):
            store = await opened.enter_async_context(
                open_embedded(folder / BOOKIE, metadata, bookie, on_fatal=fail, loop=link)
            )
        yield OpenedStorage(
            store,
            metadata,
            lambda: measures.of_bookie(store.statistics()),
            store.drop_read_cache,
            partial(EmbeddedPlaces, metadata, bookie.bookie_id),
            partial(_lend, store, request_limits(settings)),
        )


def _lend(
    store: EmbeddedStore,
    limits: RequestLimits,
    doors: Sequence[Door],
    access: BookieAccess | None,
) -> Front:
    # Imported here: few servers are asked for it.
    from magnetar.bookie.requests.front import BookieFront
    from magnetar.bookie.requests.services import BookieServices

    ledgers, running = store.lent()
    return BookieFront(BookieServices(ledgers, running, limits, access=access), doors)
