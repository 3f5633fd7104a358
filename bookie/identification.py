"""Who a bookie is: its cookies, and the lease of an embedded one.

Invariant: of two bookies with one id at most one runs, and a directory is used only by the bookie
whose cookie it has.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from magnetar.bookie import cookie_places
from magnetar.bookie.cluster import handshake
from magnetar.bookie.cluster.handshake import StartVerdict
from magnetar.bookie.format import cookie, ledger_metadata
from magnetar.bookie.server import identity
from magnetar.bookie.server.directories import Directories
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.kernel.errors import AlreadyExists, NotFound, StorageFailed
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

EMBEDDED: Final = "/magnetar/embedded-bookies"
"""Leases of running bookies, by id."""


@asynccontextmanager
async def registered(
    metadata: MetadataStore, bookie_id: str, on_fatal: Callable[[str], None]
) -> AsyncIterator[None]:
    """Hold the lease on a bookie id, so that of two bookies with that id on different disks one
    runs. `claim` holds the disk; the cookies of `identify` are checked and written under both.

    Apache's bookies do this with their ephemeral node (`ZKRegistrationManager.doRegisterBookie` of
    4.18). That is below `/ledgers/available`, where clients look for bookies to write to over the
    network, which an embedded one does not serve; so its lease has another path.
    """
    path = f"{EMBEDDED}/{bookie_id}"
    lost = f"another process may run the bookie {bookie_id}: its lease is lost"
    try:
        await metadata.lease(path, b"", lambda: on_fatal(lost))
    except AlreadyExists:
        raise StorageFailed(f"a bookie with the id {bookie_id} is running already") from None
    try:
        yield
    finally:
        with trio.CancelScope(shield=True), suppress(NotFound, StorageFailed):
            # without an answer the lease ends with the metadata store's session
            await metadata.delete(path, 0)


async def identify(
    machine: Machine,
    directories: Directories,
    metadata: MetadataStore,
    settings: BookieSettings,
    *,
    may_grow: bool = False,
) -> None:
    """Check that the directory is this bookie's: the metadata store and the directory each have its
    cookie, as with `CookieValidation` of BookKeeper 4.18. With `may_grow` new and empty directories
    become so besides those that it has.
    """
    found = await metadata.get(ledger_metadata.INSTANCE_ID)
    if found is None:
        if any(cookie.VERSION_FILE in place.names() for place in directories.all_ledgers):
            raise StorageFailed(
                f"{directories.root.path} has stored entries before, but its metadata is lost: "
                "restore that from a backup; a bookie of a cluster starts with --metadata-uri"
            )
        instance_id = await _format(metadata, machine)
    else:
        instance_id = found.value.decode()
    ours = cookie.of_directories(settings.bookie_id, *directories.names, instance_id)
    path = f"{ledger_metadata.COOKIES}/{settings.bookie_id}"
    known = await metadata.get(path)
    if known is not None and identity.is_empty(directories):
        raise StorageFailed(
            f"{directories.root.path} is empty, but this bookie has stored entries before: is it "
            "the right disk? If it is, restore that from a backup"
        )
    if known is not None and may_grow:
        places = cookie_places.found_in(directories)
        described = [place.described for place in places]
        stored = cookie.decode(known.value.decode())
        if handshake.judge(ours, stored, described, may_grow=True) is StartVerdict.STAMP:
            cookie_places.stamp(places, ours)
            await metadata.put(path, ours.encode().encode(), known.version)
    identity.check(directories, ours)
    if known is None:
        await metadata.put(path, ours.encode().encode(), ABSENT)


async def _format(metadata: MetadataStore, machine: Machine) -> str:
    """Create a bookies' cluster in the metadata store; return its id, that of another process if it
    was first.

    The id is written last: if it exists, so does the rest.
    """
    with suppress(AlreadyExists):  # an earlier start was cut off after this
        await metadata.put(ledger_metadata.LAYOUT, ledger_metadata.LAYOUT_VALUE, ABSENT)
    made = str(uuid.UUID(int=machine.random_bits(128), version=4))
    with suppress(AlreadyExists):
        await metadata.put(ledger_metadata.INSTANCE_ID, made.encode(), ABSENT)
    found = await metadata.get(ledger_metadata.INSTANCE_ID)
    return made if found is None else found.value.decode()
