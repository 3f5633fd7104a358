"""Who a bookie that runs alone is, or one of a cluster: whose its directories are, which ledgers
exist, and how clients learn that it is there.

Invariant: nothing in the directories is read or written before they are known to be this bookie's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio
from msgspec import Struct

from magnetar.bookie.identification import identify
from magnetar.bookie.server.directories import Directories
from magnetar.bookie.server.garbage.ledger_catalog import LedgerCatalog
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.metadata.embedded import open_embedded as open_metadata
from magnetar.core.ports.bookie_administration import ClusterAdministration, PeerAdministration
from magnetar.core.ports.machine import Machine
from magnetar.operator_error import OperatorError
from magnetar.process.data_directory import METADATA, damaged

if TYPE_CHECKING:
    from magnetar.bookie.format.service_info import ServiceInfo
    from magnetar.security.shown_credentials import ShownCredentials


class BookieOptions(Struct, frozen=True):
    """What the command line adds to the settings of a bookie."""

    port: int
    bookie_id: str = ""
    """Its name in the metadata of ledgers and in its cookie; `host:port` by default."""
    metadata_uri: str = ""
    """Where the cluster's metadata are, `zk+hierarchical://HOST:PORT/ledgers`; empty for a bookie
    that is in none."""
    zk_timeout_seconds: float = 10.0
    """Of the session with ZooKeeper, Apache's `zkTimeout`."""
    http_port: int | None = None
    """Of Apache's HTTP paths; None for no HTTP."""
    journal_dir: str = ""
    ledger_dirs: tuple[str, ...] = ()
    """Directories on other disks; by default both are below the data directory."""
    with_recovery: bool = False
    """Whether the cluster's ledgers are repaired by this process too (`autoRecoveryDaemonEnabled`).
    """
    may_grow: bool = False
    """Whether new and empty directories may be added to those that the bookie has, Apache's
    `allowStorageExpansion`."""


class Registrar(Protocol):
    """Tells clients that a bookie is there, as Apache's bookies do with ephemeral nodes below
    `/ledgers/available` (`BookieStateManager.java` of 4.18).
    """

    @property
    def is_held(self) -> bool:
        """Whether clients can find it."""
        ...

    def set_read_only(self, read_only: bool) -> None:
        """Tell clients, soon, that it takes no writes, or that it does again."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Register, report that, and stay registered until `end`."""
        ...

    async def end(self) -> None:
        """Tell clients that it stops."""
        ...


class NoRegistrar:
    """For bookies whose clients know where they are."""

    is_held = False

    def set_read_only(self, read_only: bool) -> None: ...

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()

    async def end(self) -> None: ...


class BookieIdentity(NamedTuple):
    """See the module's docstring."""

    catalog: LedgerCatalog | None
    """Which ledgers exist; None if nothing tells of that."""
    registrar: Registrar
    cluster: ClusterAdministration | None
    peers: PeerAdministration | None


@asynccontextmanager
async def alone(
    options: BookieOptions,
    folder: Path,
    bookie: BookieSettings,
    machine: Machine,
    directories: Directories,
    fail: Callable[[str], None],
) -> AsyncIterator[BookieIdentity]:
    """A bookie without a cluster: its cookie is in metadata of its own."""
    with explained_damage(folder, METADATA):
        async with open_metadata(folder / METADATA, on_fatal=fail) as metadata:
            await identify(machine, directories, metadata, bookie, may_grow=options.may_grow)
            yield BookieIdentity(None, NoRegistrar(), None, None)


@asynccontextmanager
async def in_cluster(
    options: BookieOptions,
    bookie_id: str,
    info: ServiceInfo,
    shown: ShownCredentials,
    machine: Machine,
    directories: Directories,
) -> AsyncIterator[BookieIdentity]:
    """A bookie of a cluster; `shown` is for the others."""
    # Imported here: a bookie that is alone needs no client of ZooKeeper.
    from magnetar.bookie.cluster import cluster as clusters
    from magnetar.bookie.membership import Membership
    from magnetar.bookie_peers import BookiePeers
    from magnetar.core.metadata.zookeeper.addresses import parse
    from magnetar.core.metadata.zookeeper.store import open_zookeeper

    joining = f"cannot join the cluster at {options.metadata_uri}"
    with explained(joining):
        address = parse(options.metadata_uri)
        async with open_zookeeper(address, options.zk_timeout_seconds) as store:
            with explained(joining):  # once more, since the store has a nursery
                cluster = await clusters.join(
                    store, address.ledgers, address.layout, chroot=address.root
                )
                member = Membership(store, cluster, bookie_id)
                await member.check(machine.threads, directories, may_grow=options.may_grow)
            registration = member.registration(info, store.session_seconds)
            peers = BookiePeers(member.overview, member.ledgers, machine.threads, shown)
            yield BookieIdentity(member.ledgers, registration, member.overview, peers)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Errors that operators can do something about, as `OperatorError`s."""
    try:
        yield
    except (BrokerError, OSError) as error:  # foreign, in use, not readable or writable
        raise OperatorError(f"{what}: {error}") from error


def explained_damage(folder: Path, part: str) -> AbstractContextManager[None]:
    """The same for a part of the data directory, which may be damaged."""
    return _explained_damage(folder, lambda error: damaged(folder, part, error))


def explained_damage_of_one(folder: Path) -> AbstractContextManager[None]:
    """The same for a bookie that is not a whole server's, which no command repairs: what others
    have of it is worth more than what is left here.
    """
    return _explained_damage(
        folder,
        lambda error: (
            f"cannot use the data in {folder}: {error}. Restore its directories from a backup; "
            "or, in a cluster, have other bookies take its place (`magnetar bookie recover`), "
            "and begin anew (`magnetar bookie format`)"
        ),
    )


@contextmanager
def _explained_damage(folder: Path, advice: Callable[[Exception], str]) -> Iterator[None]:
    with explained(f"cannot use the data in {folder}"):
        try:
            yield
        except Corrupted as error:
            raise OperatorError(advice(error)) from error
