"""The share of the settings of those parts that every server process has: the link and the bookie.

It stands apart from `part_settings.py` because a bookie that runs alone has no front of a broker,
and should not import any.
"""

from typing import Final

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core import native
from magnetar.core.link.limits import LinkLimits
from magnetar.settings import Settings

MEBIBYTE: Final = 1024 * 1024
RECEIVE_BYTES: Final = 512 * 1024
RECEIVE_BYTES_PURE: Final = 256 * 1024
"""The loop needs 5 ms for this many bytes of the smallest messages; pure code is half as fast."""
SENDING_PART: Final = 4
PARTIAL_PART: Final = 8
STORING_PART: Final = 8
LOADED_PART: Final = 8
HTTP_PART: Final = 16
HELD_PART: Final = 16
"""Shares of the memory budget: a quarter for output, an eighth each for partly received frames, for
data on its way to storage and for entries that are read from it for consumers, a sixteenth each for
HTTP's bodies and answers, and for what waits in WebSockets until it is pulled. The rest is for
caches, for the allocator's overhead, and for requests in progress."""
HELD_MESSAGES: Final = 3
"""Of the longest messages, at least so many may wait there: one entry, decompressed and in base64,
takes that."""


def link_limits(settings: Settings) -> LinkLimits:
    limits = settings.limits
    budget = limits.memory_budget_mb * MEBIBYTE
    return LinkLimits(
        sending_bytes_max=budget // SENDING_PART,
        partial_bytes_max=budget // PARTIAL_PART,
        storing_bytes_max=budget // STORING_PART,
        storing_bytes_per_connection_max=limits.pending_bytes_per_connection,
        unread_seconds=limits.unread_seconds,
        connections_max=limits.connections,
        connections_per_address_max=limits.connections_per_address,
        outbox_high_bytes=limits.outbox_high_water_bytes,
        silence_seconds=limits.keep_alive_seconds,
        receive_bytes=RECEIVE_BYTES if native.is_compiled() else RECEIVE_BYTES_PURE,
    )


def request_limits(settings: Settings) -> RequestLimits:
    bookie = settings.bookie
    return RequestLimits(
        max_adds_in_progress_limit=bookie.max_adds_in_progress_limit,
        max_reads_in_progress_limit=bookie.max_reads_in_progress_limit,
        max_pending_add_requests_per_thread=bookie.max_pending_add_requests_per_thread,
        max_pending_read_requests_per_thread=bookie.max_pending_read_requests_per_thread,
        journal_queue_size=bookie.journal_queue_size,
        db_storage_max_throttle_time_ms=bookie.db_storage_max_throttle_time_ms,
        wait_timeout_on_response_backpressure_ms=bookie.wait_timeout_on_response_backpressure_ms,
        close_channel_on_response_timeout=bookie.close_channel_on_response_timeout,
        max_batch_read_size=bookie.max_batch_read_size,
        netty_max_frame_size_bytes=bookie.netty_max_frame_size_bytes,
    )


def bookie_settings(settings: Settings) -> BookieSettings:
    storage = settings.storage
    return BookieSettings(
        sync=storage.sync,
        journal_size_max_bytes=storage.journal_max_size_mb * MEBIBYTE,
        journal_spares_max=storage.journal_max_backups,
        journal_queue_bytes_max=storage.journal_queue_bytes,
        burst_bytes_max=settings.limits.memory_budget_mb * MEBIBYTE // STORING_PART
        + settings.broker.max_message_size,
        write_cache_bytes=storage.write_cache_max_size_mb * MEBIBYTE,
        read_cache_bytes=storage.read_cache_max_size_mb * MEBIBYTE,
        read_chunk_bytes=storage.read_ahead_bytes,
        block_cache_bytes=storage.index_cache_size_mb * MEBIBYTE,
        read_threads_max=storage.read_threads,
        checkpoint_interval_seconds=storage.flush_interval_seconds,
        entry_log_size_max_bytes=storage.entry_log_size_limit_mb * MEBIBYTE,
        gc_interval_seconds=storage.gc_wait_seconds,
        minor_compaction_threshold=storage.minor_compaction_threshold,
        minor_compaction_interval_seconds=storage.minor_compaction_interval_seconds,
        major_compaction_threshold=storage.major_compaction_threshold,
        major_compaction_interval_seconds=storage.major_compaction_interval_seconds,
        disk_usage_threshold=storage.disk_usage_threshold,
        disk_usage_low_mark=storage.disk_usage_low_water_mark,
        disk_usage_warn_threshold=storage.disk_usage_warn_threshold,
        any_full_is_read_only=storage.read_only_mode_on_any_disk_full_enabled,
        force_gc_when_no_space=storage.is_force_gc_allow_when_no_space,
        high_priority_bytes_min=storage.min_usable_size_for_high_priority_writes,
        scrub_bytes_per_second=int(storage.scrub_mb_per_second * MEBIBYTE),
        disk_check_interval_seconds=storage.disk_check_interval_seconds,
    )
