"""The resource groups: their records, and the groups that loaded topics are in.

    stored      all of them, read when somebody asks
    live        those of loaded topics, by name; one that no topic is in any more is forgotten

Every broker of a cluster may change a record, and is told what others change: a live group gets its
rates when its record is written, whoever writes it, and loses them when it is deleted. A topic may
be in a group without a record, which limits nothing until it is created.

Invariants: a name has one live group. Its rates are those of its record, once `find`, `put` or
`delete` have returned. A record that cannot be read limits nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    Invalid,
    InvalidName,
    NotAllowed,
    NotFound,
)
from magnetar.core.kernel.names import NAME_BYTES_MAX
from magnetar.core.metadata.changed_paths import ChangedPaths
from magnetar.core.policy.policies import decode
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.quotas.resource_group import NO_RATES, PATH, GroupRates, ResourceGroup

log = logging.getLogger(__name__)

GROUPS_MAX: Final = 10_000
"""Records; who lists them gets all names at once."""
UNKNOWN: Final = "ResourceGroup does not exist"


class ResourceGroups:
    """See the module's docstring."""

    def __init__(
        self,
        metadata: MetadataStore,
        clock: Clock,
        changed: Callable[[ResourceGroup], Awaitable[None]],
    ) -> None:
        """`changed` gives the topics that are in a group its new buckets."""
        self._metadata = metadata
        self._clock = clock
        self._changed = changed
        self._live: WeakValueDictionary[str, ResourceGroup] = WeakValueDictionary()
        self._paths = ChangedPaths("resource groups", self._load)
        self.run, self.settled = self._paths.run, self._paths.settled
        self.naming = trio.Lock()
        """Held while a namespace is put into a group, and while one is deleted that none is in."""

    def open(self) -> None:
        """Follow what changes, from now on."""
        self._paths.follow(self._metadata, (PATH,))

    # -- live groups --------------------------------------------------------------------------

    async def find(self, name: str) -> ResourceGroup | None:
        """The group of that name, whether it has a record or not; None for no name."""
        if not name:
            return None
        group = self._live.get(name)
        if group is None:
            group = self._live[name] = ResourceGroup(name)
            self._paths.note(f"{PATH}/{name}")
        if not group.known:
            await self.settled()
        return group

    def live(self) -> list[ResourceGroup]:
        """Those that loaded topics are in."""
        return list(self._live.values())

    async def _load(self, path: str) -> bool:
        names = list(self._live) if path == PATH else [path.removeprefix(f"{PATH}/")]
        for name in names:
            group = self._live.get(name)
            if group is None:
                continue  # no topic is in it
            rates = await self._stored(name) or NO_RATES
            group.is_due |= group.set(rates, self._clock.monotonic())
            if group.is_due:  # also if the one who has set them was cancelled before the end
                await self._changed(group)
                group.is_due = False
        return False

    # -- records ------------------------------------------------------------------------------

    async def names(self) -> list[str]:
        return await self._metadata.children(PATH)

    async def get(self, name: str) -> GroupRates:
        """The rates of a group; `NotFound` if there is none."""
        rates = await self._stored(name)
        if rates is None:
            raise NotFound(UNKNOWN)
        return rates

    async def exists(self, name: str) -> bool:
        return _is_name(name) and await self._metadata.get(_path(name)) is not None

    async def _stored(self, name: str) -> GroupRates | None:
        found = await self._metadata.get(_path(name)) if _is_name(name) else None
        return None if found is None else _rates_in(name, found.value)

    async def put(self, name: str, sent: GroupRates) -> None:
        """Create a group, or change the rates that are named."""
        while True:
            found = await self._metadata.get(_path(name)) if _is_name(name) else None
            if found is None:
                await self._check_new(name)
            before = NO_RATES if found is None else _rates_in(name, found.value)
            try:
                await self._metadata.put(
                    _path(name),
                    msgspec.json.encode(sent.over(before)),
                    ABSENT if found is None else found.version,
                )
            except (AlreadyExists, BadVersion):
                continue  # somebody else was faster: read again
            break
        await self._apply(name)

    async def _check_new(self, name: str) -> None:
        if not _is_name(name):
            raise InvalidName(f"{name!r} cannot name a resource group")
        if len(await self.names()) >= GROUPS_MAX:
            raise NotAllowed(f"there are {GROUPS_MAX} resource groups, and may be no more")

    async def delete(self, name: str) -> None:
        """Delete a group, in which the caller has found no namespace (`naming`)."""
        while True:
            found = await self._metadata.get(_path(name)) if _is_name(name) else None
            if found is None:
                raise NotFound(UNKNOWN)
            try:
                await self._metadata.delete(_path(name), found.version)
            except (BadVersion, NotFound):
                continue
            break
        await self._apply(name)

    async def _apply(self, name: str) -> None:
        self._paths.note(_path(name))
        await self.settled()


def _path(name: str) -> str:
    return f"{PATH}/{name}"


def _is_name(name: str) -> bool:
    """Whether a group may have that name. Apache's broker checks none, and its groups may be here:
    so it is almost any part of a path.
    """
    is_short = len(name.encode(errors="replace")) <= NAME_BYTES_MAX
    return is_short and name.isprintable() and "/" not in name and name.strip(" .") != ""


def _rates_in(name: str, record: bytes) -> GroupRates:
    try:
        return decode(record, GroupRates, "not a resource group").over(NO_RATES)
    except Invalid as error:
        log.warning("resource group %s limits nothing, its record cannot be read: %s", name, error)
        return NO_RATES
