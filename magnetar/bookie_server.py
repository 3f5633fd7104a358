"""The composition root of a bookie that runs alone, for clients of Apache BookKeeper.

    door (socket) -> link -> sessions -> the bookie's ledgers -> journal, entry logs, indexes

The link is made first, because the journal reports its writes to it. In a cluster
(`--metadata-uri`) the bookie is registered once it serves. When it stops, first its registration
ends, then reading, then what was received is stored and answered, then storage closes; before its
data are opened a stop ends it at once. A permanent storage failure ends the process, and so does
another process that runs as the same bookie.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from magnetar.bookie.format import service_info
from magnetar.bookie.format.service_info import BookieEndpoint, ServiceInfo
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.requests.authentication import BookieAccess
from magnetar.bookie.requests.front import BookieFront
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.running import RunningBookie, open_bookie
from magnetar.bookie.server.directories import Directories, claim
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie_identity import (
    BookieIdentity,
    BookieOptions,
    Registrar,
    alone,
    explained,
    explained_damage_of_one,
    in_cluster,
)
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.backend import NO_BACKEND
from magnetar.core.link.front import Door, TlsContext
from magnetar.core.link.loop import Link
from magnetar.core.ports.machine import Machine
from magnetar.doors.certificates import ServerCertificates
from magnetar.doors.sockets import DoorPlan, address, open_doors
from magnetar.operator_error import OperatorError
from magnetar.process import memory
from magnetar.process.data_directory import BOOKIE
from magnetar.process.early_stop import ended_by
from magnetar.process.ready import ReadyReport
from magnetar.security.bookies import BookieSecurity, open_bookie_security
from magnetar.settings import Settings
from magnetar.shared_settings import bookie_settings, link_limits, request_limits
from magnetar.storage.failure import ended_by_failure

if TYPE_CHECKING:
    from magnetar.recovery_server import RecoveryBeside

log = logging.getLogger(__name__)

NAME: Final = "bookie"
UPGRADED: Final = DoorPlan(NAME, lambda _: 0, lambda _: "")
"""For the TLS of clients that ask for it on the same door."""
Join = Callable[[Machine, Directories], AbstractAsyncContextManager[BookieIdentity]]
"""Takes a bookie's place in its cluster."""
HTTP: Final = "http"
"""Of the doors, in the ready file."""


async def serve(
    options: BookieOptions,
    settings: Settings,
    ready: Callable[[ReadyReport], None],
    stop: trio.Event,
) -> None:
    """Open the door, serve, and shut down in order once `stop` is set."""
    _check_advertised(options, settings)
    security = _security(settings)
    doors = _doors(options, settings, security)
    certificates = ServerCertificates([UPGRADED], settings.tls)
    info = ServiceInfo(tuple(_endpoints(settings, doors, with_tls=bool(certificates.contexts))))
    reached = info.rpc().address
    bookie = _settings_of(settings, options.bookie_id or reached)
    join = partial(in_cluster, options, bookie.bookie_id, info, security.shown)
    link = Link(SystemClock(), link_limits(settings))
    with ExitStack() as closed:
        for each in doors.values():
            closed.callback(each.socket.close)
        async with (
            ended_by(stop) as begun,
            _storage(options, settings, bookie, join, link, begun) as (running, identity),
        ):
            tls = certificates.contexts.get(NAME)
            services = _services(running, bookie, request_limits(settings), tls, security.access)
            link.serve(services.storage, NO_BACKEND)
            # Sessions append in sweeps of the link, or between its `begin` and `settle`.
            running.flusher.leave_to_loop()
            registrar = identity.registrar
            front = BookieFront(services, [doors[NAME]])
            async with trio.open_nursery() as nursery:
                await nursery.start(link.run)
                for run in (front.run, security.run, certificates.run):
                    nursery.start_soon(run)
                for listener in front.listeners:
                    link.listen(listener)
                recovery = _recovery(options, settings, bookie.bookie_id)
                if recovery is not None:
                    nursery.start_soon(recovery.run)
                if HTTP in doors:
                    # Imported here: few bookies are asked for it.
                    from magnetar import bookie_http

                    parts = bookie_http.BookieParts(
                        settings, options, bookie.bookie_id, reached, running,
                        services, identity, link, stop, security.guarded,
                        recovery.running if recovery else None,
                    )  # fmt: skip
                    nursery.start_soon(bookie_http.serve, parts, doors[HTTP])
                registrar.set_read_only(not services.ledgers.writable)
                nursery.start_soon(front.tell_mode, registrar.set_read_only)
                await _register(nursery, registrar, stop)
                nursery.start_soon(memory.give_back_what_is_not_needed)
                if not stop.is_set():
                    ready(ReadyReport({name: address(each.socket) for name, each in doors.items()}))
                await stop.wait()
                await registrar.end()
                link.stop_reading()
                await link.stop()
                nursery.cancel_scope.cancel()


def _security(settings: Settings) -> BookieSecurity:
    with_ca = bool(settings.tls.certificate and settings.tls.client_ca)
    return open_bookie_security(settings.security, SystemClock(), with_ca=with_ca)


def _settings_of(settings: Settings, bookie_id: str) -> BookieSettings:
    return replace(bookie_settings(settings), bookie_id=bookie_id, entries_prove_themselves=False)


def _recovery(options: BookieOptions, settings: Settings, bookie_id: str) -> RecoveryBeside | None:
    """Of the bookie's cluster, if it is asked for."""
    if not options.with_recovery:
        return None
    # Imported here: few bookies are asked for it, and it is a client of all others.
    from magnetar import recovery_server
    from magnetar.bookie.replication.settings import RecoverySettings

    chosen = recovery_server.RecoveryOptions(
        options.metadata_uri, RecoverySettings(), options.zk_timeout_seconds, bookie_id
    )
    return recovery_server.RecoveryBeside(chosen, settings.security)


def _doors(options: BookieOptions, settings: Settings, security: BookieSecurity) -> dict[str, Door]:
    plans = [DoorPlan(NAME, lambda _: options.port)]
    if (port := options.http_port) is not None:
        plans.append(DoorPlan(HTTP, lambda _: port))
    asks = security.asks(over_http=options.http_port is not None)
    return open_doors(plans, settings, {}, authenticates=asks)


def _endpoints(
    settings: Settings, doors: Mapping[str, Door], *, with_tls: bool
) -> Iterator[BookieEndpoint]:
    """Where clients connect, as the bookie publishes it, by Apache's names
    (`EmbeddedServer.java` of 4.18).
    """
    for name, door in doors.items():
        host, port = door.socket.getsockname()[:2]
        host = settings.listen.advertised_host or host
        if name == NAME:
            extensions = ("tls",) if with_tls else ()
            yield BookieEndpoint("bookie", host, port, extensions=extensions)
        else:
            yield BookieEndpoint("httpserver", host, port, service_info.HTTP)


def _check_advertised(options: BookieOptions, settings: Settings) -> None:
    """Refuse to register an address that means all of a machine's."""
    host = settings.listen.advertised_host or settings.listen.host
    if options.metadata_uri and host in ("", "0.0.0.0", "::"):
        raise OperatorError(
            f"clients cannot connect to {host}: name this machine with --advertised-host"
        )


def _services(
    running: RunningBookie,
    settings: BookieSettings,
    limits: RequestLimits,
    tls: TlsContext | None,
    access: BookieAccess | None,
) -> BookieServices:
    clock = running.storage.machine.clock
    spare = settings.high_priority_bytes_min or settings.entry_log_size_max_bytes
    ledgers = ServedLedgers(running.bookie, clock, spare)
    return BookieServices(ledgers, running, limits, tls, access)


async def _register(nursery: trio.Nursery, registrar: Registrar, stop: trio.Event) -> None:
    """Return when clients know of the bookie, or are not to hear of it any more."""
    async with trio.open_nursery() as starting:
        starting.start_soon(_end_at, stop, registrar)
        await nursery.start(_registered, registrar)
        starting.cancel_scope.cancel()


async def _registered(
    registrar: Registrar, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    with explained("this bookie cannot run"):
        await registrar.run(task_status=task_status)


async def _end_at(stop: trio.Event, registrar: Registrar) -> None:
    """Have a stop end the wait for the former session of a bookie that was killed."""
    await stop.wait()
    await registrar.end()


@asynccontextmanager
async def _storage(
    options: BookieOptions,
    settings: Settings,
    bookie: BookieSettings,
    join: Join,
    link: Link,
    begun: Callable[[], None],
) -> AsyncIterator[tuple[RunningBookie, BookieIdentity]]:
    """The running bookie, and who it is. Failures to open are `OperatorError`s; `begun` is called
    when that is known, and the data are about to be opened.
    """
    folder, machine = Path(settings.storage.data_dir), system_machine()
    async with ended_by_failure("bookie") as fail, AsyncExitStack() as opened:
        with explained(f"cannot use the data in {folder}"):
            directories = opened.enter_context(
                claim(machine.disk, str(folder / BOOKIE), options.journal_dir, options.ledger_dirs)
            )
        if options.metadata_uri:
            found = join(machine, directories)
        else:
            found = alone(options, folder, bookie, machine, directories, fail)
        identity = await opened.enter_async_context(found)
        begun()
        with explained_damage_of_one(folder):
            running = await opened.enter_async_context(
                open_bookie(machine, directories, identity.catalog, bookie, fail, link)
            )
        yield running, identity
