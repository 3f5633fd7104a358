"""The composition root of AutoRecovery: alone (`magnetar recovery`), or in a bookie's process.

Either way it has a session with ZooKeeper of its own: when that ends, it gives up what it was
elected for or had locked, and begins anew. A bookie beside it does not wait for it, and goes on
whatever happens here.
"""

from __future__ import annotations

import logging
import platform
import random  # noqa: TID251  # this composes the ledger client
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Final

import trio
from msgspec import Struct

from magnetar.bookie.client.quorum.store import ClientMachine
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.format import service_info
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.replication.auto_recovery import (
    AutoRecovery,
    RecoveryMember,
    open_auto_recovery,
)
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie_identity import explained
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.front import Door
from magnetar.doors.sockets import DoorPlan, address, open_doors
from magnetar.operator_error import OperatorError
from magnetar.process.early_stop import ended_by
from magnetar.process.ready import ReadyReport
from magnetar.security.shown_credentials import ShownCredentials
from magnetar.settings import Settings
from magnetar.settings.security import Security

HTTP: Final = "http"
"""Of the door, in the ready file."""
PORT: Final = 3181
"""That of the bookie which Apache's AutoRecovery is named after, whether it runs or not."""


RETRY_SECONDS: Final = 10.0
log = logging.getLogger(__name__)


class RecoveryOptions(Struct, frozen=True):
    """What the command line says."""

    metadata_uri: str
    """Where the cluster's metadata are, `zk+hierarchical://HOST:PORT/ledgers`."""
    recovery: RecoverySettings
    zk_timeout_seconds: float = 10.0
    bookie_id: str = ""
    """Our name in votes and locks; the host's, with a bookie's port, by default."""
    http_port: int | None = None
    """Of figures; None for no HTTP."""


@asynccontextmanager
async def opened(
    options: RecoveryOptions, security: Security, began_ms: int | None = None
) -> AsyncIterator[AutoRecovery]:
    """AutoRecovery, for as long as the block lasts."""
    # Imported here: a bookie that is alone needs no client of ZooKeeper.
    from magnetar.core.metadata.zookeeper.addresses import parse
    from magnetar.core.metadata.zookeeper.store import open_zookeeper

    bookie_id = options.bookie_id or f"{platform.node()}:{PORT}"
    shown = ShownCredentials(security)
    network = shown.network(SystemNetwork())
    machine = ClientMachine(network, SystemClock(), random.Random())
    repairing = f"cannot repair the cluster at {options.metadata_uri}"
    with explained(repairing):
        service_info.check_id(bookie_id)
        address = parse(options.metadata_uri)
        async with open_zookeeper(address, options.zk_timeout_seconds) as store:
            with explained(repairing):  # once more, since the store has a nursery
                cluster = await clusters.find(
                    store, address.ledgers, address.layout, chroot=address.root
                )
                await UnderReplication(store, cluster).prepare()
            async with (
                open_auto_recovery(
                    store, cluster, machine, RecoveryMember(bookie_id, began_ms), options.recovery
                ) as found,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(shown.run)
                yield found
                nursery.cancel_scope.cancel()


class RecoveryBeside:
    """AutoRecovery in a bookie's process."""

    def __init__(self, options: RecoveryOptions, security: Security) -> None:
        self._options = options
        self._security = security
        self._found: AutoRecovery | None = None
        self._began_ms = SystemClock().wall_ms()

    def running(self) -> AutoRecovery | None:
        """None until it has begun, and after a failure until it has begun again."""
        return self._found

    async def run(self) -> None:
        """Audit and repair until it is cancelled; what goes wrong is logged, and tried again."""
        while True:
            try:
                async with opened(self._options, self._security, self._began_ms) as self._found:
                    await trio.sleep_forever()
            except OperatorError as error:
                log.error("%s", error)
            except Exception:
                log.exception("the repair of ledgers failed: it is tried again")
            finally:
                self._found = None
            await trio.sleep(RETRY_SECONDS)


async def serve(
    options: RecoveryOptions,
    settings: Settings,
    ready: Callable[[ReadyReport], None],
    stop: trio.Event,
) -> None:
    """Audit and repair until `stop` is set."""
    port = options.http_port
    plans = [] if port is None else [DoorPlan(HTTP, lambda _: port)]
    with ExitStack() as closed:
        doors = open_doors(plans, settings, {})
        for door in doors.values():
            closed.callback(door.socket.close)
        async with (
            ended_by(stop) as begun,
            opened(options, settings.security) as recovery,
            trio.open_nursery() as nursery,
        ):
            begun()
            if doors:
                nursery.start_soon(_serve_http, recovery, settings, doors[HTTP])
            ready(ReadyReport({name: address(door.socket) for name, door in doors.items()}))
            await stop.wait()
            nursery.cancel_scope.cancel()


async def _serve_http(recovery: AutoRecovery, settings: Settings, door: Door) -> None:
    # Imported here: few are asked for it.
    from magnetar.bookie_http import http_options
    from magnetar.core.kernel.spare_files import SpareFiles
    from magnetar.measures.recovery import families
    from magnetar.wire.http.app import RECOVERY, serve_http
    from magnetar.wire.http.services import HttpServices

    options = http_options(settings, door.socket)
    services = HttpServices(None, options, lambda: families(recovery))
    await serve_http(services, [door], SpareFiles().lend, RECOVERY)
