"""What a bookie asks the other bookies of its cluster for its administrators: room on their disks,
and entries of ledgers.

Bookies that do not answer are left out, as Apache's `ListBookieInfoService.java` (4.18) does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from magnetar.bookie.client.connection.question import ask_once
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.overview import ClusterOverview
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.reading.read_handle import open_ledger
from magnetar.bookie.reading.sources import PlannedLedgers
from magnetar.bookie.rpc.messages import BookieInfo, GetBookieInfo, Status
from magnetar.core.kernel.errors import BrokerError, Overloaded
from magnetar.core.ports.threads import Threads
from magnetar.security.shown_credentials import ShownCredentials

ANSWER_SECONDS: Final = 5.0
AT_ONCE: Final = 32
"""Bookies that are asked at a time."""
READ_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of the entries of one request."""


class BookiePeers:
    """A `PeerAdministration`."""

    def __init__(
        self,
        overview: ClusterOverview,
        ledgers: ClusterLedgers,
        threads: Threads,
        shown: ShownCredentials,
    ) -> None:
        self._overview = overview
        self._ledgers = ledgers
        self._threads = threads
        self._shown = shown
        self._network = shown.network(SystemNetwork())
        self._readers = threads.workers(1)

    async def _addresses(self) -> Mapping[str, tuple[str, int]]:
        found = {**await self._overview.bookies(), **await self._overview.read_only_bookies()}
        split = {bookie: address.rpartition(":") for bookie, address in found.items() if address}
        return {bookie: (host, int(port)) for bookie, (host, _, port) in split.items()}

    async def rooms(self) -> Mapping[str, tuple[int, int]]:
        addresses = await self._addresses()
        answers: dict[str, tuple[int, int]] = {}
        limiter = trio.CapacityLimiter(AT_ONCE)

        async def ask(bookie: str, host: str, port: int) -> None:
            async with limiter:
                with trio.move_on_after(ANSWER_SECONDS):
                    try:
                        found = await ask_once(self._network, host, port, GetBookieInfo(True, True))
                    except (BrokerError, OSError):
                        return
                    if isinstance(found, BookieInfo) and found.status is Status.OK:
                        answers[bookie] = (found.free or 0, found.total or 0)

        async with trio.open_nursery() as nursery:
            for bookie, (host, port) in addresses.items():
                nursery.start_soon(ask, bookie, host, port)
        return {bookie: answers[bookie] for bookie in addresses if bookie in answers}

    async def entries(self, ledger_id: int, first: int, last: int | None) -> Mapping[int, bytes]:
        metadata = (await self._ledgers.stored(ledger_id)).value
        addresses = await self._addresses()
        words = self._shown.first_words()
        source = PlannedLedgers({ledger_id: metadata}, addresses, words=words)
        return await self._readers.run(_read, ledger_id, source, first, last)


def _read(
    ledger_id: int, source: PlannedLedgers, first: int, last: int | None
) -> Mapping[int, bytes]:
    """Blocks: for a thread."""
    found: dict[int, bytes] = {}
    size = 0
    with open_ledger(ledger_id, source) as ledger:
        confirmed = ledger.last_confirmed()
        end = confirmed if last is None else min(last, confirmed)
        if first > end:
            return found
        for entry_id, payload in ledger.entries(first, end):
            size += len(payload)
            if size > READ_BYTES_MAX:
                raise Overloaded(
                    f"these entries have more than {READ_BYTES_MAX} bytes: ask for fewer, "
                    "or use `magnetar ledger read`"
                )
            found[entry_id] = payload
    return found
