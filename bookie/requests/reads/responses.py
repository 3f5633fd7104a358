"""What is answered to a read: from memory at once, or from the disk; and how large that will be.

Nothing here knows of connections. A response that is not known to be small is built only when there
is memory for it (`read_memory.py`), so its size is found first, from the index and the length that
an entry has in front.

`ReadEntryProcessor.java`, `ReadEntryProcessorV3.java`, `ReadLacProcessorV3.java` of BookKeeper
4.18.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

from magnetar.bookie.format import availability
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.batch import BATCH_HEAD_BYTES, ENTRY_HEAD_BYTES, Batch
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    BatchRead,
    BookieMessage,
    EntryList,
    Lac,
    ListEntries,
    Read,
    ReadEntries,
    ReadEntry,
    ReadLac,
    Status,
)
from magnetar.bookie.rpc.version3 import Header
from magnetar.bookie.rpc.wire import Call
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.server.ledgers.states import UNKNOWN_LAC
from magnetar.core.kernel.errors import BrokerError, EntryNotFound

RESPONSE_BYTES: Final = BATCH_HEAD_BYTES + ENTRY_HEAD_BYTES
"""About what a response takes without its entry, and just what a batch of one does."""
FRAME_HEAD_BYTES: Final = 128
"""More than a frame has around a list of entries."""


class Responses:
    """See the module's docstring."""

    def __init__(self, ledgers: ServedLedgers, limits: RequestLimits) -> None:
        self._ledgers = ledgers
        self._limits = limits
        self._usual: tuple[int, int] = (-1, 0)
        """The ledger of the last batch, and the mean size of its entries."""

    # -- sizes --------------------------------------------------------------------------------

    def size_at_once(self, request: BookieMessage) -> int | None:
        """The size of a response that may be in memory, of a batch with one entry; None if it is
        not. Plain call.
        """
        if isinstance(request, BatchRead):
            entry_id = request.first
        elif isinstance(request, Read) and request.entry_id >= 0 and not request.piggyback:
            entry_id = request.entry_id
        else:
            return None
        size = self._ledgers.size_at_once(request.ledger_id, entry_id)
        return None if size is None else RESPONSE_BYTES + size

    async def size(self, request: BookieMessage) -> int:
        """About the size of a response, of a batch with one entry. One that is an error is small,
        and so is a list of entries as a rule.
        """
        size = 0
        with suppress(BrokerError):  # then the read ends in it, too
            size = await self._entry_size(request)
        return RESPONSE_BYTES + size

    async def _entry_size(self, request: Any) -> int:
        ledgers, ledger_id = self._ledgers, request.ledger_id
        if isinstance(request, ListEntries):
            return 0
        ledgers.known(ledger_id)
        if isinstance(request, BatchRead):
            return await ledgers.size(ledger_id, request.first)
        if isinstance(request, Read) and request.piggyback and not request.fence:
            previous, lac = request.previous_lac, await ledgers.lac(ledger_id)
            if previous is None or previous >= lac:
                return 0
            return await ledgers.size(ledger_id, previous + 1)
        if isinstance(request, ReadLac) or request.entry_id == LAST_ENTRY:
            return await ledgers.size(ledger_id, await ledgers.last_id(ledger_id))
        return await ledgers.size(ledger_id, request.entry_id)

    # -- responses ----------------------------------------------------------------------------

    def at_once(self, call: Call, bytes_max: int) -> BookieMessage | None:
        """The response, if all of it is in memory. Plain call; `bytes_max` is for a batch."""
        request = call.request
        if isinstance(request, BatchRead):
            batch = self._batch(request, bytes_max)
            return batch.response() if batch.gather(self._ledgers) else None
        if not isinstance(request, Read) or request.entry_id < 0 or request.piggyback:
            return None
        entry = self._ledgers.entry_at_once(request.ledger_id, request.entry_id)
        if entry is None:
            return None
        lac = None
        if isinstance(call.header, Header) and not request.fence:
            lac = self._ledgers.known(request.ledger_id).lac
            if lac == UNKNOWN_LAC:
                return None
        return ReadEntry(Status.OK, request.ledger_id, request.entry_id, entry, lac)

    def _batch(self, request: BatchRead, bytes_max: int) -> Batch:
        """One whose entries are as large as those before, as who reads a ledger finds them."""
        ledger_id, usual_bytes = self._usual
        if request.ledger_id != ledger_id:
            return Batch(request, bytes_max)
        return Batch(request, bytes_max, usual_bytes)

    async def from_disk(self, call: Call, bytes_max: int) -> BookieMessage:
        """The response; `bytes_max` is for a batch."""
        request = call.request
        if isinstance(request, BatchRead):
            batch = self._batch(request, bytes_max)
            response = await batch.read(self._ledgers)
            self._usual = request.ledger_id, batch.last_bytes
            return response
        if isinstance(request, ReadLac):
            return await self._read_lac(request)
        if isinstance(request, ListEntries):
            size_max = self._limits.netty_max_frame_size_bytes - FRAME_HEAD_BYTES
            encode = partial(availability.encode, bytes_max=size_max)
            encoded = await self._ledgers.entry_ids(request.ledger_id, encode)
            return EntryList(Status.OK, request.ledger_id, encoded)
        assert isinstance(request, Read)
        if request.piggyback and not request.fence:
            return await self._piggyback(request)
        entry = await self._entry(request.ledger_id, request.entry_id)
        lac = None
        if isinstance(call.header, Header) and not request.fence:
            lac = await self._ledgers.lac(request.ledger_id)
        return ReadEntry(Status.OK, request.ledger_id, request.entry_id, entry, lac)

    async def _entry(self, ledger_id: int, entry_id: int) -> bytes:
        self._ledgers.known(ledger_id)
        if entry_id == LAST_ENTRY:
            return await self._ledgers.last_entry(ledger_id)
        entry = self._ledgers.entry_at_once(ledger_id, entry_id)
        return entry if entry is not None else await self._ledgers.entry(ledger_id, entry_id)

    async def _piggyback(self, request: Read) -> ReadEntry:
        """The LAC, and the entry behind the one that the client knows, if it is here: with striping
        it may be on other bookies.
        """
        lac = await self._ledgers.lac(request.ledger_id)
        state, previous = self._ledgers.known(request.ledger_id), request.previous_lac
        if previous is not None and lac > previous:
            with suppress(EntryNotFound):
                entry = await self._entry(request.ledger_id, previous + 1)
                return ReadEntry(
                    Status.OK, request.ledger_id, previous + 1, entry, lac, state.lac_ms or None
                )
        return ReadEntry(Status.OK, request.ledger_id, request.entry_id, None, lac)

    async def _read_lac(self, request: ReadLac) -> Lac:
        packet = self._ledgers.known(request.ledger_id).explicit_lac or None
        last = None
        with suppress(EntryNotFound):
            last = await self._ledgers.last_entry(request.ledger_id)
        status = Status.NO_ENTRY if packet is None and last is None else Status.OK
        return Lac(status, request.ledger_id, packet, last)


def size_of(response: BookieMessage) -> int:
    """About the bytes of a response."""
    size = 0
    if isinstance(response, ReadEntry):
        size = len(response.entry or b"")
    elif isinstance(response, ReadEntries):
        return BATCH_HEAD_BYTES + sum(map(len, response.records))
    elif isinstance(response, EntryList):
        size = len(response.availability or b"")
    elif isinstance(response, Lac):
        size = len(response.last_entry or b"")
    return RESPONSE_BYTES + size
