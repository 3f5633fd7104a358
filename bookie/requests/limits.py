"""The limits of requests in progress, with Apache's names and defaults (4.18). Pure.

Apache's bookie has seven limits against more than it can take. What they limit there are queues
between threads; here a request is carried out at once, so each is about what waits instead:

    maxAddsInProgressLimit                  adds of all connections (`in_progress.py`); off
    maxReadsInProgressLimit                 reads of all connections that wait; off
    maxPendingAddRequestsPerThread          adds of all connections beyond the next one:
                                            TOO_MANY_REQUESTS (`back_pressure.py`)
    journalQueueSize, and                   adds that wait for their sync: no connection that adds
      journalMaxMemorySizeMb                is read. The second one is `journal_queue_bytes` of the
                                            storage settings
    maxPendingReadRequestsPerThread         reads of one connection that wait: TOO_MANY_REQUESTS;
                                            of all, eight times as many
    dbStorage_maxThrottleTimeMs             how long connections that add are not read, because
                                            storage has no room; then TOO_MANY_REQUESTS
    waitTimeoutOnResponseBackpressureMs     how long reads wait for a client that does not receive
                                            (`response_timeout.py`); off: the link closes it after
                                            `LinkLimits.unread_seconds`

Memory is bounded for all connections together: bytes being stored and bytes to be sent by the link
(`core/link/memory`), responses before they are built by `read_memory.py`, reads that wait by
`reads_waiting_max`, long polls by `LacWaiters`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1024 * 1024
READ_THREADS: Final = 8
"""Apache's `numReadWorkerThreads`, each with a queue of its own."""


class RequestLimits(Struct, frozen=True):
    """See the module's docstring."""

    max_adds_in_progress_limit: int = 0
    max_reads_in_progress_limit: int = 0
    max_pending_add_requests_per_thread: int = 10_000
    max_pending_read_requests_per_thread: int = 10_000
    journal_queue_size: int = 10_000
    """Adds; 0 for no limit."""
    db_storage_max_throttle_time_ms: int = 10_000
    wait_timeout_on_response_backpressure_ms: int = -1
    """Negative for no limit."""
    close_channel_on_response_timeout: bool = False
    max_batch_read_size: int = 5 * MEBIBYTE
    netty_max_frame_size_bytes: int = 5 * MEBIBYTE
    long_poll_ms_max: int = 60_000
    """A longer wait ends early: the client asks again."""

    @property
    def reads_waiting_max(self) -> int:
        """Reads of all connections that wait."""
        return READ_THREADS * self.max_pending_read_requests_per_thread
