"""Settings reach link and bookie in the right units, and both agree on what is usual."""

import msgspec

from magnetar.bookie.server.settings import BookieSettings
from magnetar.core.link.limits import LinkLimits
from magnetar.settings import load
from magnetar.shared_settings import bookie_settings, link_limits


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
