"""The composition root: the only place that connects fronts, core and storage. Read this first.

    doors (sockets) -> link -> fronts -> broker -> managed ledgers   -> own bookie, or a cluster's
                                                -> catalog, cursors  -> own metadata, or ZooKeeper

This module decides only which parts know each other and in which order they start. They stop in
reverse order: doors close and reading ends, topics are unloaded (messages in flight are stored and
answered, cursors are saved), every peer receives its answers, storage closes. A permanent storage
failure ends the process: everything acknowledged is safe, but later acknowledgements might not be.

The link is made first, because storage reports its writes to it and the broker its work. One call
(`Link.serve`) gives it both, before any front is opened. `fronts.py` lists the fronts, `storage/`
has both kinds of storage.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import trio
from msgspec.structs import replace

from magnetar import part_settings
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.spare_files import SpareFiles
from magnetar.core.ledger.read.tickets import TicketOffice
from magnetar.core.link.loop import Link
from magnetar.doors.certificates import ServerCertificates
from magnetar.doors.sockets import open_doors
from magnetar.fronts import BOOKIE, Parts, door_plans, http_address, make_fronts
from magnetar.measures import security
from magnetar.process import memory
from magnetar.process.ready import ReadyReport
from magnetar.security.access import GuardedAccess, open_access
from magnetar.settings import Settings
from magnetar.shared_settings import link_limits
from magnetar.storage.embedded import open_embedded_storage
from magnetar.storage.opened import OpenStorage


async def serve(
    settings: Settings,
    ready: Callable[[ReadyReport], None],
    stop: trio.Event,
    open_storage: OpenStorage = open_embedded_storage,
) -> None:
    """Open the doors, serve, and shut down in order once `stop` is set."""
    plans = door_plans(settings)
    clock = SystemClock()
    guarded = open_access(settings.security, clock)
    mqtt_acl = guarded.open_acl_file(settings.mqtt)
    office = _ticket_office(settings, guarded)
    certificates = ServerCertificates(plans, settings.tls, guarded.trust)
    authenticates = settings.security.authenticates
    doors = open_doors(plans, settings, certificates.contexts, authenticates=authenticates)
    link = Link(clock, link_limits(settings), http_address(settings, doors))
    async with open_storage(settings, link) as storage:
        store = storage.ledgers
        usual = part_settings.broker_settings(settings, storage.quorums)
        gathering = replace(usual, gathers_appends=True)
        broker = Broker(gathering, store, storage.metadata, clock, link.schedule_settle)
        broker.guard(guarded.with_users(settings.security, storage.metadata))
        link.serve(store, broker)
        lend = SpareFiles().lend
        parts = Parts(settings, doors, link, storage, broker, lend, mqtt_acl)
        if storage.lend is None:
            parts = replace(parts, tickets=office)
        elif authenticates:
            parts = _with_readers(parts, guarded, office)
        with ExitStack() as closed:
            async with trio.open_nursery() as nursery:
                # First, because the journal reports its writes to the link, and a front that
                # starts may write.
                await nursery.start(link.run)
                await nursery.start(broker.run)
                nursery.start_soon(guarded.run)
                nursery.start_soon(certificates.run)
                fronts = make_fronts(parts)
                parts.measured.append(partial(security.families, guarded))
                for front in fronts:
                    closed.callback(front.close)
                    await front.open()
                for front in fronts:
                    for listener in front.listeners:
                        link.listen(listener)
                    nursery.start_soon(front.run)
                storage.drop_read_cache()
                nursery.start_soon(memory.give_back_what_is_not_needed, lambda: broker.unloaded)
                ready(ReadyReport(parts.addresses()))
                await stop.wait()
                link.stop_reading()
                for front in fronts:
                    await front.stop()
                await broker.stop()
                await link.stop()
                nursery.cancel_scope.cancel()


def _ticket_office(settings: Settings, guarded: GuardedAccess) -> TicketOffice | None:
    """With the key that is set for tickets, if one is."""
    if not settings.security.ticket_key:
        return None
    from magnetar.security.bookies import open_tickets

    return open_tickets(settings.security, guarded)


def _with_readers(parts: Parts, guarded: GuardedAccess, office: TicketOffice | None) -> Parts:
    """What readers of the own bookie are asked for, and get to show, if it has a port."""
    if BOOKIE not in parts.doors:
        return parts
    # Imported here: few servers are asked for it.
    from magnetar.security.bookies import open_bookie_access, own_tickets

    settings = parts.settings.security
    office = office or own_tickets(settings)
    access = open_bookie_access(settings, guarded, parts.broker.clock, office)
    return replace(parts, bookie_access=access, tickets=office)
