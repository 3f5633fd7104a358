"""Settings reach link and bookie in the right units, and both agree on what is usual."""

import msgspec

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.link.limits import LinkLimits
from magnetar.settings import Settings, load
from magnetar.settings.storage import BookieRequests
from magnetar.shared_settings import bookie_settings, link_limits, request_limits


def test_defaults_are_the_parts_own() -> None:
    usual = load().settings
    # How much is received at once is not set by anybody: it depends on the codec.
    link = msgspec.structs.replace(link_limits(usual), receive_bytes=LinkLimits().receive_bytes)
    assert link == LinkLimits()
    assert bookie_settings(usual) == BookieSettings()


def test_units() -> None:
    settings = load(
        "[limits]\nkeep_alive_seconds = 1.5\n[storage]\nsync = false\nwrite_cache_max_size_mb = 4"
    ).settings
    assert link_limits(settings).silence_seconds == 1.5
    bookie = bookie_settings(settings)
    assert (bookie.sync, bookie.write_cache_bytes) == (False, 4_194_304)


def test_what_a_full_disk_does() -> None:
    settings = load(
        "[storage]\ndisk_usage_warn_threshold = 0.5\nis_force_gc_allow_when_no_space = true\n"
        "read_only_mode_on_any_disk_full_enabled = true\n"
        "min_usable_size_for_high_priority_writes = 7"
    ).settings
    bookie = bookie_settings(settings)
    assert (bookie.disk_usage_warn_threshold, bookie.high_priority_bytes_min) == (0.5, 7)
    assert bookie.force_gc_when_no_space
    assert bookie.any_full_is_read_only


def test_a_bookies_limits_of_requests_are_apaches() -> None:
    """Each setting has its effect, and the defaults are Apache's."""
    assert request_limits(Settings()) == RequestLimits()
    changed = {
        "max_adds_in_progress_limit": 1,
        "max_reads_in_progress_limit": 2,
        "max_pending_add_requests_per_thread": 3,
        "max_pending_read_requests_per_thread": 4,
        "journal_queue_size": 5,
        "db_storage_max_throttle_time_ms": 6,
        "wait_timeout_on_response_backpressure_ms": 7,
        "close_channel_on_response_timeout": True,
        "max_batch_read_size": 4096,
        "netty_max_frame_size_bytes": 70_000,
    }
    assert set(changed) == set(BookieRequests.__struct_fields__)
    found = request_limits(Settings(bookie=BookieRequests(**changed)))
    assert {name: getattr(found, name) for name in changed} == changed
    assert found.reads_waiting_max == 32
