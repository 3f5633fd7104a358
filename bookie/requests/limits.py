"""The limits of requests in progress, with Apache's names and defaults (4.18). Pure.

Apache's bookie has seven limits against more than it can take. What they limit there are queues
between threads; here a request is carried out at once, so what remains of each is:

    maxAddsInProgressLimit                the same, of all connections (`in_progress.py`); off, as
                                          theirs: bytes being stored are bounded in any case
    maxReadsInProgressLimit               the same, of reads that wait; off, as theirs: of each
                                          connection one is carried out, the others wait
    maxPendingAddRequestsPerThread        no such queue: adds go to the journal at once
    maxPendingReadRequestsPerThread       reads that wait, of one connection: TOO_MANY_REQUESTS
    journalMaxMemorySizeMb                `BookieSettings.journal_queue_bytes_max`: no connection
                                          that writes is read
    dbStorage_maxThrottleTimeMs           no such wait: as above, while the write cache is full
    waitTimeoutOnResponseBackpressureMs   a client that takes nothing is closed after
                                          `LinkLimits.unread_seconds`; its reads wait meanwhile

Memory is bounded for all connections together: bytes being stored and bytes to be sent by the link
(`core/link/memory`), reads that wait by `reads_waiting_max`, long polls by `LacWaiters`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1024 * 1024


class RequestLimits(Struct, frozen=True):
    """See the module's docstring."""

    max_adds_in_progress_limit: int = 0
    max_reads_in_progress_limit: int = 0
    max_pending_read_requests_per_thread: int = 10_000
    reads_waiting_max: int = 80_000
    """Reads that wait, of all connections: Apache's limit for each of its 8 threads."""
    max_batch_read_size: int = 5 * MEBIBYTE
    netty_max_frame_size_bytes: int = 5 * MEBIBYTE
    long_poll_ms_max: int = 60_000
    """A longer wait ends early: the client asks again."""
