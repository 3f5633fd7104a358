"""How many requests of each kind were answered, well or not, by the names of Apache's metrics.

A batch of reads is one READ_ENTRY_REQUEST; fences and long polls are reads of their own kinds
(`RequestStats.java`, `ReadEntryProcessorV3.getRequestStats` of 4.18).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    BatchRead,
    BookieMessage,
    ForceLedger,
    GetBookieInfo,
    ListEntries,
    Read,
    ReadLac,
    Status,
    WriteLac,
)


class RequestKind(enum.StrEnum):
    """Their values are Apache's names. They are strings, whose hashes take half the time."""

    ADD = "ADD_ENTRY_REQUEST"
    READ = "READ_ENTRY_REQUEST"
    FENCE = "READ_ENTRY_FENCE_REQUEST"
    LONG_POLL = "READ_ENTRY_LONG_POLL_REQUEST"
    FORCE = "FORCE_LEDGER_REQUEST"
    WRITE_LAC = "WRITE_LAC_REQUEST"
    READ_LAC = "READ_LAC_REQUEST"
    INFO = "GET_BOOKIE_INFO_REQUEST"
    LIST = "GET_LIST_OF_ENTRIES_OF_LEDGER_REQUEST"


_KINDS: Final[Mapping[type[BookieMessage], RequestKind]] = {
    BatchRead: RequestKind.READ,
    ForceLedger: RequestKind.FORCE,
    GetBookieInfo: RequestKind.INFO,
    ListEntries: RequestKind.LIST,
    ReadLac: RequestKind.READ_LAC,
    WriteLac: RequestKind.WRITE_LAC,
}


class RequestCounters:
    """See the module's docstring. Authentication and TLS are not counted."""

    def __init__(self) -> None:
        self.good = dict.fromkeys(RequestKind, 0)
        self.failed = dict.fromkeys(RequestKind, 0)
        self.reads_rejected = 0
        """Too many waited."""
        self.reads_dropped = 0
        """Their client did not receive in time."""
        self.last_entries_missing = 0
        """Reads of the last entry of ledgers without one."""

    def added(self, count: int, *, good: bool) -> None:
        """So many adds were answered."""
        (self.good if good else self.failed)[RequestKind.ADD] += count

    def answered(self, request: Any, status: Status) -> None:
        """Any other request was."""
        if isinstance(request, Read):
            kind: RequestKind | None = RequestKind.READ
            if request.fence:
                kind = RequestKind.FENCE
            elif request.previous_lac is not None:
                kind = RequestKind.LONG_POLL
            if request.entry_id == LAST_ENTRY and status is Status.NO_ENTRY:
                self.last_entries_missing += 1
        else:
            kind = _KINDS.get(type(request))
        if kind is not None:
            (self.good if status is Status.OK else self.failed)[kind] += 1
