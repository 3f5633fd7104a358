"""The ledgers that lack replicas, as auditors mark them and replication workers unmark them.

    underreplication/LAYOUT                                the form of what follows
    underreplication/ledgers/HHHH/HHHH/HHHH/HHHH/urLN      a ledger: what it lacks, ctime
    underreplication/locks/urLN                            leased by who repairs it: bookieId
    underreplication/disable                               is there while all that is suspended
    underreplication/lostBookieRecoveryDelay               seconds, in decimal
    underreplication/checkallledgersctime                  when all ledgers were checked last

The id of a ledger stands twice in its path: as four groups of four hexadecimal digits, and in
decimal. Values are text protobuf, but for the last one. Apache's auditors and workers use the same
(`ZkLedgerUnderreplicationManager.java` of BookKeeper 4.18).

Invariants: a mark only gains bookies, and its version rises with each audit. It is removed with the
version that was read under the lock, so what is marked meanwhile stays marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.levels import remove_empty_levels
from magnetar.bookie.proto.replication_pb2 import CheckAllLedgers
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, Corrupted, NotFound, Unsupported
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

ROOT: Final = "underreplication"
LEVELS: Final = 4
LAYOUT: Final = b'type: "BASIC"\nversion: 1\n'
_NODE: Final = re.compile(r"urL(\d{10,19})")
_REPLICA: Final = re.compile(r'replica:\s*"([^"]*)"')
_HOLDER: Final = re.compile(r'bookieId:\s*"([^"]*)"')
_CREATED: Final = re.compile(r"ctime:\s*(-?\d+)")
_LAYOUT: Final = re.compile(r'\s*type:\s*"BASIC"\s*version:\s*1\s*')


class UnderReplicatedLedger(Struct, frozen=True):
    """A ledger, and the bookies that should have it and do not."""

    ledger_id: int
    missing: tuple[str, ...]
    found_ms: int | None = None
    """When it was found."""


class UnderReplication:
    """Apache's LedgerUnderreplicationManager; see the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster) -> None:
        self.store = store
        self.root = cluster.path(ROOT)
        self.ledgers = f"{self.root}/ledgers"
        self.locks = f"{self.root}/locks"
        self._disable = f"{self.root}/disable"
        self._delay = f"{self.root}/lostBookieRecoveryDelay"
        self._checked = f"{self.root}/checkallledgersctime"

    async def prepare(self) -> None:
        """Create what Apache's tools expect; `Unsupported` if another form is there."""
        for path, value in (
            (self.root, b""),
            (f"{self.root}/LAYOUT", LAYOUT),
            (self.ledgers, b""),
            (self.locks, b""),
        ):
            with suppress(AlreadyExists):
                await self.store.put(path, value, ABSENT)
        found = await self.store.get(f"{self.root}/LAYOUT")
        if found is None or _LAYOUT.fullmatch(found.value.decode(errors="replace")) is None:
            raise Unsupported(f"{self.root}/LAYOUT says {found and found.value!r}, not BASIC 1")

    # -- marks --------------------------------------------------------------------------------

    def path_of(self, ledger_id: int) -> str:
        """Where a ledger is marked."""
        digits = f"{ledger_id:016x}"
        groups = "/".join(digits[at : at + 4] for at in range(0, 16, 4))
        return f"{self.ledgers}/{groups}/{name_of(ledger_id)}"

    def lock_of(self, ledger_id: int) -> str:
        """Who has this lease repairs the ledger."""
        return f"{self.locks}/{name_of(ledger_id)}"

    async def lock_holder(self, ledger_id: int) -> str | None:
        """Who repairs a ledger, as that calls itself; None if nobody does."""
        found = await self.store.get(self.lock_of(ledger_id))
        if found is None:
            return None
        name = _HOLDER.search(found.value.decode(errors="replace"))
        return name[1] if name is not None else "a client without a name"

    async def mark(self, ledger_id: int, missing: Collection[str], now_ms: int) -> bool:
        """Note that bookies lack what they should have of a ledger; whether that was not known.

        What is known is written once more: a worker that has found them alive may be about to
        unmark the ledger.
        """
        path = self.path_of(ledger_id)
        while True:
            found = await self.store.get(path)
            known = () if found is None else _decode(ledger_id, found.value).missing
            is_new = found is None or not set(missing) <= set(known)
            names = tuple(dict.fromkeys((*known, *sorted(missing))))
            version = ABSENT if found is None else found.version
            with suppress(AlreadyExists, BadVersion):  # by another auditor, or a worker is through
                await self.store.put(path, _encode(names, now_ms), version)
                return is_new

    async def marked(self, ledger_id: int) -> tuple[UnderReplicatedLedger, int] | None:
        """What is noted of a ledger, and the version to unmark it with."""
        found = await self.store.get(self.path_of(ledger_id))
        return None if found is None else (_decode(ledger_id, found.value), found.version)

    async def unmark(self, ledger_id: int, version: int) -> bool:
        """Note that a ledger has all replicas; not if it was marked again since that version."""
        path = self.path_of(ledger_id)
        try:
            await self.store.delete(path, version)
        except BadVersion:
            return False
        except NotFound:  # by a worker that had the lock before
            return True
        await remove_empty_levels(self.store, path, self.ledgers)
        return True

    # -- switches, and when -------------------------------------------------------------------

    async def is_enabled(self) -> bool:
        return await self.store.get(self._disable) is None

    async def disable(self) -> None:
        """Suspend auditors and workers; `AlreadyExists` if they are."""
        await self.store.put(self._disable, b"", ABSENT)

    async def enable(self) -> None:
        """Let them go on; `NotFound` if they were not suspended."""
        found = await self.store.get(self._disable)
        if found is None:
            raise NotFound("nothing is suspended")
        await self.store.delete(self._disable, found.version)

    async def delay(self) -> tuple[int, int] | None:
        """`lostBookieRecoveryDelay` in seconds, if it is set, and the version of that."""
        found = await self.store.get(self._delay)
        if found is None:
            return None
        try:
            return int(found.value), found.version
        except ValueError:
            raise Corrupted(f"{self._delay} says {found.value!r}, no number") from None

    async def set_delay(self, seconds: int) -> None:
        """Also to what it was: auditors take that as a request to look at once."""
        while True:
            found = await self.store.get(self._delay)
            version = ABSENT if found is None else found.version
            with suppress(AlreadyExists, BadVersion):
                await self.store.put(self._delay, b"%d" % seconds, version)
                return

    async def checked_ms(self) -> int | None:
        """When all ledgers were checked last."""
        found = await self.store.get(self._checked)
        if found is None:
            return None
        try:
            return int(CheckAllLedgers.FromString(found.value).checkAllLedgersCTime)
        except DecodeError:
            raise Corrupted(f"{self._checked} makes no sense") from None

    async def set_checked(self, now_ms: int) -> None:
        found = await self.store.get(self._checked)
        data = CheckAllLedgers(checkAllLedgersCTime=now_ms).SerializeToString()
        with suppress(AlreadyExists, BadVersion):  # by another one that was the auditor
            await self.store.put(self._checked, data, ABSENT if found is None else found.version)

    def watch(self, changed: Callable[[str], None]) -> Callable[[], None]:
        """Hear of all changes; see `MetadataStore.watch`."""
        return self.store.watch(self.root, changed)


def name_of(ledger_id: int) -> str:
    """The name of a ledger's mark, and of its lock."""
    return f"urL{ledger_id:010d}"


def id_of(name: str) -> int | None:
    """The ledger of a mark; None if the name is of none."""
    match = _NODE.fullmatch(name)
    return int(match[1]) if match is not None else None


async def under_replicated(
    store: MetadataStore, cluster: BookKeeperCluster
) -> list[UnderReplicatedLedger]:
    """All of them, in the order of their ids; those that are repaired meanwhile may be missing."""
    found: list[UnderReplicatedLedger] = []
    await _walk(store, cluster.path(ROOT, "ledgers"), 0, found)
    return sorted(found, key=lambda each: each.ledger_id)


async def _walk(
    store: MetadataStore, path: str, level: int, found: list[UnderReplicatedLedger]
) -> None:
    for name in await store.children(path):
        if level < LEVELS:
            await _walk(store, f"{path}/{name}", level + 1, found)
        elif (ledger_id := id_of(name)) is not None:
            stored = await store.get(f"{path}/{name}")
            if stored is not None:
                found.append(_decode(ledger_id, stored.value))


def _encode(missing: Collection[str], now_ms: int) -> bytes:
    """As Apache's auditor with its default `storeSystemTimeAsLedgerUnderreplicatedMarkTime`."""
    replicas = "".join(f'replica: "{bookie}"\n' for bookie in missing)
    return f"{replicas}ctime: {now_ms}\n".encode()


def _decode(ledger_id: int, value: bytes) -> UnderReplicatedLedger:
    text = value.decode(errors="replace")
    created = _CREATED.search(text)
    return UnderReplicatedLedger(
        ledger_id, tuple(_REPLICA.findall(text)), int(created[1]) if created else None
    )
