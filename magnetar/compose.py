"""The composition root: the only place that connects fronts, core and storage. Read this first.

    doors (sockets) -> link -> fronts -> broker -> managed ledgers   -> embedded bookie
                                                -> catalog, cursors  -> metadata

This module decides only which parts know each other and in which order they start. They stop in
reverse order: doors close and reading ends, topics are unloaded (messages in flight are stored and
answered, cursors are saved), every peer receives its answers, storage closes. A permanent storage
failure ends the process: everything acknowledged is safe, but later acknowledgements might not be.

The link is made first, because storage reports its writes to it and the broker its work. One call
(`Link.serve`) gives it both, before any front is opened. `fronts.py` lists the fronts.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import trio
from msgspec.structs import replace

from magnetar import part_settings
from magnetar.bookie.embedded import EmbeddedStore, open_embedded
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed
from magnetar.core.kernel.spare_files import SpareFiles
from magnetar.core.link.loop import Link
from magnetar.core.metadata.embedded import EmbeddedMetadata
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.doors.certificates import server_contexts
from magnetar.doors.sockets import open_doors
from magnetar.fronts import Parts, door_plans, http_address, make_fronts
from magnetar.operator_error import OperatorError
from magnetar.process import memory
from magnetar.process.data_directory import BOOKIE, METADATA, damaged
from magnetar.process.ready import ReadyReport
from magnetar.settings import Settings
from magnetar.shared_settings import bookie_settings, link_limits

log = logging.getLogger(__name__)


async def serve(settings: Settings, ready: Callable[[ReadyReport], None], stop: trio.Event) -> None:
    """Open the doors, serve, and shut down in order once `stop` is set."""
    plans = door_plans(settings)
    doors = open_doors(plans, settings, server_contexts(plans, settings.tls))
    clock = SystemClock()
    link = Link(clock, link_limits(settings), http_address(settings, doors))
    async with _storage(settings, link) as (store, metadata):
        gathering = replace(part_settings.broker_settings(settings), gathers_appends=True)
        broker = Broker(gathering, store, metadata, clock, link.schedule_settle)
        link.serve(store, broker)
        parts = Parts(settings, doors, link, store, broker, SpareFiles().lend)
        with ExitStack() as closed:
            async with trio.open_nursery() as nursery:
                # First, because the journal reports its writes to the link, and a front that
                # starts may write.
                await nursery.start(link.run)
                await nursery.start(broker.run)
                fronts = make_fronts(parts)
                for front in fronts:
                    closed.callback(front.close)
                    await front.open()
                for front in fronts:
                    for listener in front.listeners:
                        link.listen(listener)
                    nursery.start_soon(front.run)
                store.drop_read_cache()
                nursery.start_soon(memory.give_back_what_is_not_needed)
                ready(ReadyReport(parts.addresses()))
                await stop.wait()
                link.stop_reading()
                for front in fronts:
                    await front.stop()
                await broker.stop()
                await link.stop()
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def _storage(
    settings: Settings, link: Link
) -> AsyncIterator[tuple[EmbeddedStore, EmbeddedMetadata]]:
    """Metadata, and the bookie whose ledgers it names. Failures to open are `OperatorError`s."""
    folder = Path(settings.storage.data_dir)
    async with trio.open_nursery() as nursery:

        def fail(reason: str) -> None:
            log.critical("storage failed, this server stops: %s", reason)
            nursery.start_soon(_raise, StorageFailed(reason))

        async with AsyncExitStack() as opened:
            bookie = bookie_settings(settings)
            part = METADATA
            try:
                metadata = await opened.enter_async_context(
                    open_metadata(folder / METADATA, on_fatal=fail)
                )
                part = BOOKIE
                store = await opened.enter_async_context(
                    open_embedded(folder / BOOKIE, metadata, bookie, on_fatal=fail, loop=link)
                )
            except Corrupted as error:
                raise OperatorError(damaged(folder, part, error)) from error
            except (BrokerError, OSError) as error:  # foreign, in use, not readable or writable
                raise OperatorError(f"cannot use the data in {folder}: {error}") from error
            yield store, metadata
        nursery.cancel_scope.cancel()


async def _raise(error: Exception) -> None:
    raise error
