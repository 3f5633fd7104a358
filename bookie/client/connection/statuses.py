"""Statuses of Apache's protocol as our errors. Pure.

What a writer or a recovery does depends on the kind: `Fenced` and `Unauthorized` end a writer,
`EntryNotFound` and `LedgerNotFound` are promises of the bookie, and all others are failures of this
one bookie (`LedgerHandle.java`, `PendingAddOp.java` of BookKeeper 4.18).

Invariant: every status has an error but `OK`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.errors import (
    BrokerError,
    EntryNotFound,
    Fenced,
    LedgerNotFound,
    Overloaded,
    StorageFailed,
    StorageFull,
    Unauthorized,
    Unsupported,
)

ERRORS: Final[Mapping[Status, type[BrokerError]]] = {
    Status.NO_LEDGER: LedgerNotFound,
    Status.NO_ENTRY: EntryNotFound,
    Status.BAD_REQUEST: StorageFailed,
    Status.IO_ERROR: StorageFailed,
    Status.UNAUTHORIZED: Unauthorized,
    Status.BAD_VERSION: Unsupported,
    Status.FENCED: Fenced,
    Status.READ_ONLY: StorageFull,
    Status.TOO_MANY_REQUESTS: Overloaded,
    Status.UNKNOWN_LEDGER_STATE: StorageFailed,
}


def error_of(status: Status, bookie_id: str, what: str) -> BrokerError:
    """The error with which a request ended."""
    return ERRORS[status](f"bookie {bookie_id} says of {what}: {status.value}")
