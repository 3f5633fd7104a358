"""Administration of a bookie that serves Apache BookKeeper's clients, as its HTTP paths use it.

What needs the metadata of the whole cluster is a port of its own: a bookie that runs alone has
none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class BookieState(Struct, frozen=True):
    """One bookie at one moment."""

    bookie_id: str
    address: str
    """Where its clients connect: `host:port`."""
    running: bool
    read_only: bool
    urgent_writes: bool
    """Whether what recoveries write again is accepted."""
    registered: bool
    """Whether clients can find it."""
    free_bytes: int
    total_bytes: int


class BookieFiles(Struct, frozen=True):
    """Names of files, in their order."""

    journals: Sequence[str]
    entry_logs: Sequence[str]
    mark: tuple[int, int]
    """The journal, and the place in it, from which on a start would replay."""


class CompactionDetails(Struct, frozen=True):
    """One kind of compaction."""

    suspended: bool
    running: bool
    count: int
    last_ms: int


class GarbageDetails(Struct, frozen=True):
    """Garbage collection."""

    running: bool
    minor: CompactionDetails
    major: CompactionDetails


class BookieAdministration(Protocol):
    """See the module's docstring."""

    @property
    def cluster(self) -> ClusterAdministration | None:
        """The cluster that the bookie is a member of."""
        ...

    def state(self) -> BookieState: ...

    def set_read_only(self, read_only: bool) -> None:
        """Whether writers are refused; clients are told soon."""
        ...

    async def files(self) -> BookieFiles: ...

    def garbage(self) -> GarbageDetails: ...

    def collect(self, *, minor: bool, major: bool) -> None:
        """Collect garbage now, with these compactions; `NotAllowed` for a bookie in no cluster."""
        ...

    def suspend(self, suspended: bool, *, minor: bool, major: bool) -> None:
        """Suspend these compactions, or resume them."""
        ...

    async def is_sane(self) -> bool:
        """Whether what is written now becomes durable."""
        ...


class ReplicationDetails(Struct, frozen=True):
    """Who repairs the ledgers of a cluster, and whether there is something to repair."""

    auditor: str | None
    """The id of the bookie, or of the process, that audits."""
    enabled: bool
    under_replicated: bool


class ClusterAdministration(Protocol):
    """What the metadata of a bookie's cluster tell."""

    async def bookies(self) -> Mapping[str, str]:
        """The host and port of each bookie that takes writes, by its id."""
        ...

    async def read_only_bookies(self) -> Mapping[str, str]: ...

    async def known_bookies(self) -> Sequence[str]:
        """The ids of all that have a cookie."""
        ...

    async def replication(self) -> ReplicationDetails: ...

    async def ledgers(self) -> Sequence[int]: ...

    async def ledger(self, ledger_id: int) -> Mapping[str, object]:
        """The metadata of a ledger; `LedgerNotFound`."""
        ...

    async def delete_ledger(self, ledger_id: int) -> None: ...
