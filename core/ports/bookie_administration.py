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
    locations: CompactionDetails
    """Of the index of locations, when it is asked for."""
    locations_path: str


class GarbageAdministration(Protocol):
    """Garbage collection, and compaction."""

    def details(self) -> GarbageDetails: ...

    def collect(self, *, minor: bool, major: bool) -> None:
        """Collect garbage now, with these compactions; `NotAllowed` for a bookie in no cluster."""
        ...

    def suspend(self, suspended: bool, *, minor: bool, major: bool) -> None:
        """Suspend these compactions, or resume them."""
        ...

    def compact_locations(self) -> None:
        """Compact the index of locations soon."""
        ...


class BookieAdministration(Protocol):
    """See the module's docstring."""

    @property
    def garbage(self) -> GarbageAdministration: ...

    @property
    def cluster(self) -> ClusterAdministration | None:
        """The cluster that the bookie is a member of."""
        ...

    @property
    def peers(self) -> PeerAdministration | None:
        """The bookies of that."""
        ...

    def state(self) -> BookieState: ...

    def set_read_only(self, read_only: bool) -> None:
        """Whether writers are refused; clients are told soon."""
        ...

    async def files(self) -> BookieFiles: ...

    async def is_sane(self) -> bool:
        """Whether what is written now becomes durable."""
        ...


class ReplicationDetails(Struct, frozen=True):
    """Who repairs the ledgers of a cluster, and whether there is something to repair."""

    auditor: str | None
    """The id of the bookie, or of the process, that audits."""
    enabled: bool
    under_replicated: bool


class RecoveryAdministration(Protocol):
    """What a cluster's auditor and replication workers are told, through its metadata."""

    async def is_enabled(self) -> bool: ...

    async def switch(self, *, enabled: bool) -> None:
        """Have them go on, or suspend them; also if it is so already."""
        ...

    async def waiting(self) -> Mapping[int, Sequence[str]]:
        """The ledgers that lack replicas, each with the bookies that should have them."""
        ...

    async def trigger_audit(self) -> str:
        """Ask for an audit now; whom. `NotAllowed` if nobody is asked."""
        ...

    async def delay(self) -> int | None:
        """Seconds for which one bookie may be away; None if it is not set."""
        ...

    async def set_delay(self, seconds: int) -> None: ...


class PeerAdministration(Protocol):
    """What the bookies of a cluster answer."""

    async def rooms(self) -> Mapping[str, tuple[int, int]]:
        """Free and all bytes of each that answers, by its id."""
        ...

    async def entries(self, ledger_id: int, first: int, last: int | None) -> Mapping[int, bytes]:
        """Payloads by their ids, as far as they are confirmed; `Overloaded` if they are many."""
        ...


class ClusterAdministration(Protocol):
    """What the metadata of a bookie's cluster tell."""

    @property
    def recovery(self) -> RecoveryAdministration: ...

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
