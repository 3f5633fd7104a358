"""Broker errors as statuses of Apache's protocol. Pure.

Clients act on the kind: NO_ENTRY and NO_LEDGER are promises, from which a recovery concludes that
an entry was never acknowledged here; FENCED and UNAUTHORIZED end a writer; all others make a client
try another bookie (`LedgerHandle.java`, `PendingAddOp.java` of BookKeeper 4.18). So everything that
is not certain is IO_ERROR.

Invariant: every error of the broker has a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from magnetar.bookie.rpc.messages import (
    BatchRead,
    BookieMessage,
    EntryList,
    Lac,
    ListEntries,
    ReadEntries,
    ReadEntry,
    ReadLac,
    Status,
)
from magnetar.core.kernel.errors import (
    BrokerError,
    EntryNotFound,
    Fenced,
    Invalid,
    LedgerNotFound,
    Overloaded,
    StorageFull,
    Unauthorized,
)

STATUSES: Final[Mapping[type[BrokerError], Status]] = {
    EntryNotFound: Status.NO_ENTRY,
    LedgerNotFound: Status.NO_LEDGER,
    Fenced: Status.FENCED,
    Unauthorized: Status.UNAUTHORIZED,
    Invalid: Status.BAD_REQUEST,
    Overloaded: Status.TOO_MANY_REQUESTS,
    StorageFull: Status.READ_ONLY,
}


def status_of(error: BrokerError | None) -> Status:
    """The status of a request that ended in this error, or well."""
    if error is None:
        return Status.OK
    return STATUSES.get(type(error), Status.IO_ERROR)


def refusal(request: Any, status: Status) -> BookieMessage:
    """The response to a read of any kind that ended with this status."""
    match request:
        case BatchRead():
            return ReadEntries(status, request.ledger_id, request.first, request.request_id)
        case ReadLac():
            return Lac(status, request.ledger_id)
        case ListEntries():
            return EntryList(status, request.ledger_id)
        case _:
            return ReadEntry(status, request.ledger_id, request.entry_id)
