"""One cluster, as its metadata describe it: the root, the layout, the instance.

`INSTANCEID` is made when the cluster is formatted. A bookie whose cookie names another one belongs
to another cluster, or to this one before it was formatted again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from msgspec import Struct

from magnetar.bookie.format import layout as layouts
from magnetar.bookie.format.layout import HIERARCHICAL, LAYOUTS, Layout
from magnetar.core.kernel.errors import AlreadyExists, Invalid, NotFound
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

ROOT: Final = "/ledgers"
SPECIAL: Final = (
    "available", "cookies", "LAYOUT", "INSTANCEID", "underreplication", "idgen", "idgen-long",
)  # fmt: skip
"""Names at the root that are no ledgers (`AbstractZkLedgerManager.isSpecialZnode` of 4.18)."""


class BookKeeperCluster(Struct, frozen=True):
    """See the module's docstring."""

    root: str
    layout: Layout
    instance_id: str | None
    """None in clusters that were formatted before BookKeeper 4.2."""

    def path(self, *steps: str) -> str:
        return "/".join((self.root, *steps))

    def ledger(self, ledger_id: int) -> str:
        """The path of a ledger's metadata."""
        return self.path(self.layout.path_of(ledger_id))


def is_special(name: str) -> bool:
    """Whether a name at the root is none of ledgers; `ID-` is of generators before 4.2."""
    return name in SPECIAL or name.startswith("ID-")


async def find(
    store: MetadataStore, root: str = ROOT, layout: str | None = None, *, chroot: str = ""
) -> BookKeeperCluster:
    """The cluster at a root; `layout` is what the operator takes it for, if he says so. `chroot` is
    where the store's paths begin, for messages.
    """
    found = await store.get(f"{root}/LAYOUT")
    if found is None:
        raise NotFound(
            f"there is no BookKeeper cluster at {chroot}{root}: format one first (`magnetar bookie "
            "init-cluster`, or `bookkeeper shell initnewcluster`)"
        )
    instance = await store.get(f"{root}/INSTANCEID")
    cluster = BookKeeperCluster(
        root,
        layouts.decode(found.value),
        instance.value.decode(errors="replace") if instance is not None else None,
    )
    if layout not in (None, "null", cluster.layout.name):
        raise Invalid(
            f"the ledgers at {chroot}{root} are laid out {cluster.layout.name}, not {layout}"
        )
    return cluster


async def join(
    store: MetadataStore, root: str = ROOT, layout: str | None = None, *, chroot: str = ""
) -> BookKeeperCluster:
    """The cluster at a root, for who is about to be part of it.

    Pulsar's `initialize-cluster-metadata` leaves `LAYOUT` to the first bookie or client that comes,
    as Apache's do (`PulsarRegistrationManager.java` of Pulsar 4.2,
    `AbstractZkLedgerManagerFactory.newLedgerManagerFactory` of BookKeeper 4.18).
    """
    begun = await store.get(f"{root}/INSTANCEID") is not None
    if begun and await store.get(f"{root}/LAYOUT") is None:
        chosen = LAYOUTS.get(layout or "", HIERARCHICAL)
        with suppress(AlreadyExists):  # another one has come, whose choice holds
            await store.put(f"{root}/LAYOUT", chosen.encode(), ABSENT)
    return await find(store, root, layout, chroot=chroot)
