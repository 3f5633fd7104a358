"""Use of limits: who shares them, what a change does, how much is remembered."""

from __future__ import annotations

import tracemalloc

import pytest

from magnetar.core.quotas import uses
from magnetar.core.quotas.limits import DEFAULT, QuotaEntity, QuotaKey
from magnetar.core.quotas.rate_window import WINDOW_SECONDS
from magnetar.core.quotas.usage import QuotaUsage
from magnetar.core.testing.clock import FixedClock

BYTES = QuotaKey.PRODUCED_BYTES


def made(clock: FixedClock, *limits: tuple[QuotaEntity, QuotaKey, float]) -> QuotaUsage:
    found = QuotaUsage(clock)
    for entity, key, value in limits:
        found.rules.put(entity, {key: value})
    found.changed()
    return found


def test_without_limits_there_is_nothing_to_count() -> None:
    quotas = QuotaUsage(FixedClock())
    assert not quotas.any
    assert quotas.window(BYTES, "ali", "c") is None
    assert quotas.bucket("ali", "c") is None
    assert quotas.arrived("10.0.0.1") == 0
    addresses = made(FixedClock(), (QuotaEntity(address=DEFAULT), QuotaKey.CONNECTIONS, 1.0))
    assert not addresses.any
    assert addresses.counts_connections


def test_who_shares_a_limit() -> None:
    of_user = made(FixedClock(), (QuotaEntity(DEFAULT), BYTES, 1.0))
    assert of_user.window(BYTES, "ali", "c") is of_user.window(BYTES, "ali", "d")
    assert of_user.window(BYTES, "ali", "c") is not of_user.window(BYTES, "eve", "c")
    of_client = made(FixedClock(), (QuotaEntity(client=DEFAULT), BYTES, 1.0))
    assert of_client.window(BYTES, "ali", "c") is of_client.window(BYTES, "eve", "c")
    assert of_client.window(BYTES, "ali", "c") is not of_client.window(BYTES, "ali", "d")
    of_both = made(FixedClock(), (QuotaEntity("ali", DEFAULT), BYTES, 1.0))
    assert of_both.window(BYTES, "ali", "c") is not of_both.window(BYTES, "ali", "d")
    assert of_both.window(BYTES, "eve", "c") is None


def test_a_change_keeps_what_was_used() -> None:
    clock = FixedClock()
    quotas = made(clock, (QuotaEntity("ali"), BYTES, 10.0))
    window = quotas.window(BYTES, "ali", "c")
    assert window is not None
    assert window.spend(100, clock.monotonic()) == 0
    quotas.rules.put(QuotaEntity("ali"), {BYTES: 5.0})
    quotas.changed()
    again = quotas.window(BYTES, "ali", "c")
    assert again is window
    assert again.wait_seconds(clock.monotonic()) == pytest.approx(10)
    quotas.rules.put(QuotaEntity("ali"), {})
    quotas.changed()
    assert not quotas.any
    assert quotas.window(BYTES, "ali", "c") is None


def test_mutations_have_a_bucket() -> None:
    clock = FixedClock()
    quotas = made(clock, (QuotaEntity("ali"), QuotaKey.MUTATIONS, 2.0))
    bucket = quotas.bucket("ali", "c")
    assert bucket is not None
    bucket.spend(22, 0)
    assert bucket.wait_seconds(clock.monotonic()) > 0
    assert quotas.bucket("ali", "d") is bucket
    clock.forward(1.0)
    assert bucket.allowance(clock.monotonic())[0] == pytest.approx(2)


def test_connections_of_an_address() -> None:
    clock = FixedClock()
    quotas = made(clock, (QuotaEntity(address="10.0.0.1"), QuotaKey.CONNECTIONS, 1.0))
    assert [quotas.arrived("10.0.0.1") for _ in range(10)] == [0.0] * 10
    assert quotas.arrived("10.0.0.1") == 1.0
    assert quotas.arrived("10.0.0.2") == 0
    assert quotas.arrived("::ffff:10.0.0.1") == 1.0
    clock.forward(WINDOW_SECONDS)
    assert quotas.arrived("10.0.0.1") == 0, "refused ones did not count"


def test_windows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "ENTRIES_MAX", 20)
    clock = FixedClock()
    quotas = made(clock, (QuotaEntity(client=DEFAULT), BYTES, 100.0))
    for number in range(100):
        clock.forward(0.001)
        window = quotas.window(BYTES, "ali", f"c{number}")
        assert window is not None
        window.spend(1, clock.monotonic())
        assert len(quotas._windows) <= 20
        assert len(quotas._known) <= 20
    last, first = quotas.window(BYTES, "ali", "c99"), quotas.window(BYTES, "ali", "c0")
    assert last is not None
    assert first is not None
    assert last.used(clock.monotonic()) == 1, "the newest are remembered"
    assert not first.used(clock.monotonic()), "and the oldest are not"


def test_nobody_is_freed_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "ENTRIES_MAX", 20)
    clock = FixedClock()
    quotas = made(clock, (QuotaEntity(client=DEFAULT), BYTES, 1.0))
    held = quotas.window(BYTES, "ali", "held")
    assert held is not None
    assert held.spend(1000, clock.monotonic())
    for number in range(100):
        window = quotas.window(BYTES, "eve", f"c{number}")
        assert window is not None
        window.spend(1, clock.monotonic())
    assert quotas.window(BYTES, "ali", "held") is held
    for number in range(100):
        clock.forward(0.01)
        window = quotas.window(BYTES, "eve", f"d{number}")
        assert window is not None
        window.spend(1000, clock.monotonic())
        assert len(quotas._windows) <= 20
    assert quotas.window(BYTES, "ali", "held") is held


def test_long_names_take_no_room() -> None:
    """Each request names its client, without any right, in up to 32 KB."""
    clock = FixedClock()
    kinds = (BYTES, QuotaKey.MUTATIONS)
    entities = (QuotaEntity(client=DEFAULT), QuotaEntity("ali", DEFAULT))
    quotas = QuotaUsage(clock)
    for entity in entities:
        quotas.rules.put(entity, dict.fromkeys(kinds, 1.0))
    quotas.changed()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(500):
            for user in ("ali", f"{number}" + "\U0001f600" * 200):
                name = f"{number}" + "\U0001f600" * 8_000
                quotas.window(BYTES, user, name)
                quotas.bucket(user, name)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(quotas._windows) == 1_000
    assert (after - before) / 1_000 < 5_000, "bytes a name"


def test_a_long_name_counts_as_itself() -> None:
    clock = FixedClock()
    long = "a" * 300
    quotas = made(
        clock,
        (QuotaEntity(client=DEFAULT), BYTES, 1.0),
        (QuotaEntity(client=long), BYTES, 7.0),
        (QuotaEntity(long), QuotaKey.MUTATIONS, 7.0),
    )
    one, other = quotas.window(BYTES, "ali", long), quotas.window(BYTES, "ali", long + "b")
    assert one is not None
    assert other is not None
    assert (one.limit, other.limit) == (7.0, 1.0)
    assert quotas.window(BYTES, "eve", long) is one
    assert quotas.window(BYTES, "eve", long + "b") is other
    assert quotas.bucket(long, "c") is quotas.bucket(long, "d") is not None
    assert quotas.bucket(long + "b", "c") is None
