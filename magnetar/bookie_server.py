"""The composition root of a bookie that runs alone, for clients of Apache BookKeeper.

    door (socket) -> link -> sessions -> the bookie's ledgers -> journal, entry logs, indexes

The link is made first, because the journal reports its writes to it. The bookie is registered once
it serves. When it stops, first reading ends, then what was received is stored and answered, then
storage closes. A permanent storage failure ends the process.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import trio
from msgspec import Struct
from msgspec.structs import replace

from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.requests.front import BookieFront
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.services import BookieServices
from magnetar.bookie.running import RunningBookie, open_bookie
from magnetar.bookie.server.directories import claim
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed
from magnetar.core.link.backend import NO_BACKEND
from magnetar.core.link.loop import Link
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.doors.certificates import server_contexts
from magnetar.doors.sockets import DoorPlan, address, open_doors
from magnetar.operator_error import OperatorError
from magnetar.process import memory
from magnetar.process.data_directory import BOOKIE, METADATA, damaged
from magnetar.process.ready import ReadyReport
from magnetar.settings import Settings
from magnetar.shared_settings import bookie_settings, link_limits

log = logging.getLogger(__name__)

NAME: Final = "bookie"
"""Of the door, in the ready file."""
LOOK_SECONDS: Final = 1.0
"""How often it is checked whether the bookie became read-only, or writable again."""


class BookieOptions(Struct, frozen=True):
    """What the command line adds to the settings of a bookie that runs alone."""

    port: int
    bookie_id: str = ""
    """Its name in the metadata of ledgers and in its cookie; `host:port` by default."""
    journal_dir: str = ""
    ledger_dir: str = ""
    """Directories on other disks; by default both are below the data directory."""


class Registrar(Protocol):
    """Tells clients that a bookie is there, as Apache's bookies do with ephemeral nodes below
    `/ledgers/available` (`BookieStateManager.java` of 4.18).
    """

    def set_read_only(self, read_only: bool) -> None:
        """Tell clients, soon, that it takes no writes, or that it does again."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Register, report that, and stay registered until cancelled."""
        ...


class NoRegistrar:
    """For bookies whose clients know where they are."""

    def set_read_only(self, read_only: bool) -> None: ...

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()


async def serve(
    options: BookieOptions,
    settings: Settings,
    ready: Callable[[ReadyReport], None],
    stop: trio.Event,
) -> None:
    """Open the door, serve, and shut down in order once `stop` is set."""
    plan = DoorPlan(NAME, lambda _: options.port)
    door = open_doors([plan], settings, {})[NAME]
    tls = server_contexts([DoorPlan(NAME, plan.port, lambda _: "")], settings.tls).get(NAME)
    where = address(door.socket)
    bookie = replace(
        bookie_settings(settings),
        bookie_id=options.bookie_id or where,
        metadata_names_ledgers=False,
        journal_seals=True,
    )
    link = Link(SystemClock(), link_limits(settings))
    with ExitStack() as closed:
        closed.callback(door.socket.close)
        async with _storage(options, settings, bookie, link) as running:
            link.serve(running, NO_BACKEND)
            # Sessions append in sweeps of the link, or between its `begin` and `settle`.
            running.flusher.leave_to_loop()
            front = BookieFront(_services(running, bookie, tls), [door])
            async with trio.open_nursery() as nursery:
                await nursery.start(link.run)
                nursery.start_soon(front.run)
                for listener in front.listeners:
                    link.listen(listener)
                registrar = NoRegistrar()
                nursery.start_soon(_tell_mode, registrar, running)
                await nursery.start(registrar.run)
                nursery.start_soon(memory.give_back_what_is_not_needed)
                ready(ReadyReport({NAME: where}))
                await stop.wait()
                link.stop_reading()
                await link.stop()
                nursery.cancel_scope.cancel()


def _services(
    running: RunningBookie, settings: BookieSettings, tls: ssl.SSLContext | None
) -> BookieServices:
    clock = running.storage.machine.clock
    ledgers = ServedLedgers(running.bookie, clock, settings.entry_log_size_max_bytes)
    return BookieServices(ledgers, lambda: running.disk.usage, RequestLimits(), tls)


async def _tell_mode(registrar: Registrar, running: RunningBookie) -> None:
    """Tell clients whether the bookie takes writes, whenever that changes."""
    writable = True
    while True:
        if running.bookie.writable != writable:
            writable = not writable
            registrar.set_read_only(not writable)
        await trio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def _storage(
    options: BookieOptions, settings: Settings, bookie: BookieSettings, link: Link
) -> AsyncIterator[RunningBookie]:
    """The running bookie. Failures to open are `OperatorError`s."""
    folder, machine = Path(settings.storage.data_dir), system_machine()
    async with trio.open_nursery() as nursery:

        def fail(reason: str) -> None:
            log.critical("storage failed, this bookie stops: %s", reason)
            nursery.start_soon(_raise, StorageFailed(reason))

        part = METADATA
        try:
            others = options.journal_dir, options.ledger_dir
            with claim(machine.disk, str(folder / BOOKIE), *others) as directories:
                async with open_metadata(folder / METADATA, on_fatal=fail) as metadata:
                    part = BOOKIE
                    async with open_bookie(
                        machine, directories, metadata, bookie, fail, link
                    ) as running:
                        yield running
        except Corrupted as error:
            raise OperatorError(damaged(folder, part, error)) from error
        except (BrokerError, OSError) as error:  # foreign, in use, not readable or writable
            raise OperatorError(f"cannot use the data in {folder}: {error}") from error
        nursery.cancel_scope.cancel()


async def _raise(error: Exception) -> None:
    raise error
