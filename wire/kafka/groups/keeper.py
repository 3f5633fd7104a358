"""Members of groups, where they survive a restart.

Each group has one value, written anew when its members are told something. What comes for a group
while its value is being written waits, and only the newest of it is written then.

Invariant: writes and deletions of a group happen one after the other, in the order they were asked
for; each `done` is told once, after what it asked for, or something newer, is on the disk.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

import trio

from core.errors import BrokerError, NotFound
from core.ports.metadata_store import MetadataStore
from core.waiting import Waiting
from wire.kafka.groups.kept import AnyKept, Done, decode, encode

log = logging.getLogger(__name__)

MEMBERS: Final = "/magnetar/kafka/members"


class Asked:
    """What is to be written next of one group, and who waits for that."""

    __slots__ = ("dones", "kept")

    def __init__(self) -> None:
        self.kept: AnyKept | None = None
        """None deletes."""
        self.dones: list[Done] = []


class Keeper:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._asked: dict[str, Asked] = {}
        self._busy: set[str] = set()
        """Groups of which something is being written."""
        self._news = trio.Event()

    async def all(self) -> list[tuple[str, AnyKept]]:
        """Groups that somebody was in when this server stopped."""
        found = []
        for name in await self._metadata.children(MEMBERS):
            value = await self._metadata.get(f"{MEMBERS}/{name}")
            if value is not None:
                found.append((unquote(name), decode(value.value)))
        return found

    def keep(self, group: str, kept: AnyKept | None, done: Done) -> None:
        """Write this, or delete what there is."""
        asked = self._asked.setdefault(group, Asked())
        asked.kept = kept
        asked.dones.append(done)
        self._news.set()

    async def forget(self, group: str) -> None:
        """Nobody is in any more."""
        waiting = Waiting[None]()
        self.keep(group, None, waiting.done)
        await waiting.told()

    async def run(self) -> None:
        """Until cancelled: write what was asked for."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._news.wait()
                self._news = trio.Event()
                for group in self._asked.keys() - self._busy:
                    self._busy.add(group)
                    nursery.start_soon(self._write_all, group)

    async def _write_all(self, group: str) -> None:
        while (asked := self._asked.pop(group, None)) is not None:
            error = None
            try:
                await self._write(f"{MEMBERS}/{quote(group, safe='')}", asked.kept)
            except BrokerError as caught:
                error = caught
                log.warning("group %s: its members are not kept as they are: %s", group, error)
            for done in asked.dones:
                done(error)
        self._busy.discard(group)

    async def _write(self, path: str, kept: AnyKept | None) -> None:
        if kept is not None:
            await self._metadata.put(path, encode(kept))
            return
        with suppress(NotFound):  # no round was ever over
            await self._metadata.delete(path)
