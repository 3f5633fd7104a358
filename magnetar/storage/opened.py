"""What the composition root needs of open storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from magnetar.core.link.front import Door, Front
from magnetar.core.link.loop import Link
from magnetar.core.ports.bookie_administration import ClusterAdministration
from magnetar.core.ports.group_commit import GroupCommit
from magnetar.core.ports.ledger_places import LedgerPlaces
from magnetar.core.ports.ledger_store import LedgerStore, Quorums
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.settings import Settings
from magnetar.wire.http.metrics.exposition import Family

if TYPE_CHECKING:
    from magnetar.bookie.requests.authentication import BookieAccess


class ServerLedgers(LedgerStore, GroupCommit, Protocol):
    """Ledgers that gather what is appended during a sweep of the link."""


class OpenedStorage(Struct, frozen=True):
    """Storage for as long as a server runs."""

    ledgers: ServerLedgers
    metadata: MetadataStore
    measured: Callable[[], list[Family]]
    """Its part of the metrics."""
    drop_read_cache: Callable[[], None]
    """Called once after the start, which may have read much."""
    places: Callable[[str], LedgerPlaces]
    """Where ledgers are, for programs that read them; of one's own bookie at that address."""
    lend: Callable[[Sequence[Door], BookieAccess | None], Front] | None = None
    """Serves readers of one's own bookie, who are asked who they are; None without one."""
    quorums: Quorums = Quorums(1, 1, 1)
    """Of new ledgers of topics without a policy for it."""
    bookies: ClusterAdministration | None = None
    """The cluster that it is on, for administrators; None for storage within the server."""


OpenStorage = Callable[[Settings, Link], AbstractAsyncContextManager[OpenedStorage]]
"""Failures to open are `OperatorError`s; one later ends the block."""
