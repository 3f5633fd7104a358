"""A bookie and a cluster in memory behind the HTTP paths, and a client of these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

from magnetar.core.kernel.errors import LedgerNotFound, NotAllowed
from magnetar.core.ports.bookie_administration import (
    BookieFiles,
    BookieState,
    CompactionDetails,
    GarbageDetails,
    ReplicationDetails,
)
from magnetar.wire.http.bookie.paths import application
from magnetar.wire.http.guard import HostNames
from magnetar.wire.http.metrics.exposition import gauge
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.services import HttpServices


class MemoryRecovery:
    """A `RecoveryAdministration`."""

    def __init__(self) -> None:
        self.enabled, self.audits = True, 0
        self.seconds: int | None = None
        self.missing: dict[int, Sequence[str]] = {}

    async def is_enabled(self) -> bool:
        return self.enabled

    async def switch(self, *, enabled: bool) -> None:
        self.enabled = enabled

    async def waiting(self) -> Mapping[int, Sequence[str]]:
        return self.missing

    async def trigger_audit(self) -> str:
        if not self.enabled:
            raise NotAllowed("autorecovery is disabled")
        self.audits += 1
        return "b1"

    async def delay(self) -> int | None:
        return self.seconds

    async def set_delay(self, seconds: int) -> None:
        self.seconds = seconds


class MemoryPeers:
    """A `PeerAdministration`."""

    def __init__(self) -> None:
        self.disks = {"b1": (999, 1_234_567), "b2": (5_000_000_000, 6_000_000_000)}
        self.asked: list[tuple[int, int, int | None]] = []

    async def rooms(self) -> Mapping[str, tuple[int, int]]:
        return self.disks

    async def entries(self, ledger_id: int, first: int, last: int | None) -> Mapping[int, bytes]:
        self.asked.append((ledger_id, first, last))
        return {first: b"one", first + 1: b"\xfftwo"}


class MemoryCluster:
    """A `ClusterAdministration`."""

    def __init__(self) -> None:
        self.ids = list(range(1, 251))
        self.recovery = MemoryRecovery()
        self.auditor: str | None = "b1"

    async def bookies(self) -> Mapping[str, str]:
        return {"b1": "h1:3181", "b2": "h2:3181"}

    async def read_only_bookies(self) -> Mapping[str, str]:
        return {"b3": "h3:3181"}

    async def known_bookies(self) -> Sequence[str]:
        return ["b1", "b2", "b3", "b4"]

    async def replication(self) -> ReplicationDetails:
        return ReplicationDetails(self.auditor, enabled=True, under_replicated=True)

    async def ledgers(self) -> Sequence[int]:
        return self.ids

    async def ledger(self, ledger_id: int) -> Mapping[str, object]:
        if ledger_id not in self.ids:
            raise LedgerNotFound(f"there is no ledger {ledger_id}")
        return {"state": "OPEN"}

    async def delete_ledger(self, ledger_id: int) -> None:
        self.ids.remove(ledger_id)


class MemoryGarbage:
    """A `GarbageAdministration`."""

    def __init__(self, cluster: MemoryCluster | None) -> None:
        self._cluster = cluster
        self.collected: list[tuple[bool, bool]] = []
        self.suspended = {"minor": False, "major": False}
        self.compacting = False

    def details(self) -> GarbageDetails:
        return GarbageDetails(
            True,
            CompactionDetails(self.suspended["minor"], True, 7, 70),
            CompactionDetails(self.suspended["major"], False, 8, 80),
            CompactionDetails(False, self.compacting, 9, 90),
            "/b/locations",
        )

    def collect(self, *, minor: bool, major: bool) -> None:
        if self._cluster is None:
            raise NotAllowed("it is in no cluster")
        self.collected.append((minor, major))

    def suspend(self, suspended: bool, *, minor: bool, major: bool) -> None:
        self.suspended |= {"minor": suspended} if minor else {}
        self.suspended |= {"major": suspended} if major else {}

    def compact_locations(self) -> None:
        self.compacting = True


class MemoryBookie:
    """A `BookieAdministration`."""

    def __init__(self, cluster: MemoryCluster | None) -> None:
        self.cluster = cluster
        self.peers = None if cluster is None else MemoryPeers()
        self.garbage = MemoryGarbage(cluster)
        self.running, self.read_only, self.sane = True, False, True

    def state(self) -> BookieState:
        return BookieState(
            "<b1>", "h1:3181", self.running, self.read_only, True, self.cluster is not None, 5, 9
        )

    def set_read_only(self, read_only: bool) -> None:
        self.read_only = read_only

    async def files(self) -> BookieFiles:
        return BookieFiles(["1.txn", "a.txn"], ["0.log"], (10, 512))

    async def is_sane(self) -> bool:
        return self.sane


class Visitor:
    """Asks, and reads what is answered."""

    def __init__(self, bookie: MemoryBookie, client: httpx.AsyncClient) -> None:
        self.bookie = bookie
        self.client = client

    async def does(self, method: str, path: str, body: Any = None) -> Any:
        response = await self.client.request(method, path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def get(self, path: str) -> Any:
        return await self.does("GET", path)

    async def fails(self, status: int, method: str, path: str, body: Any = None) -> str:
        response = await self.client.request(method, path, json=body)
        assert response.status_code == status, response.text
        return str(response.json()["reason"])


@asynccontextmanager
async def visiting(*, alone: bool = False) -> AsyncIterator[Visitor]:
    bookie = MemoryBookie(None if alone else MemoryCluster())
    options = HttpOptions(
        version="Magnetar 1", hosts=HostNames(("here",)), configuration={"storage.sync": "True"}
    )
    services = HttpServices(None, options, lambda: [gauge("bookie_x", "X", 3)], bookie=bookie)
    transport = httpx.ASGITransport(app=application(services))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        yield Visitor(bookie, client)
