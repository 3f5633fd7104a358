"""How many uses are remembered, whose, and under which names."""

from __future__ import annotations

import pytest

from magnetar.core.quotas import uses
from magnetar.core.quotas.limits import QuotaScope
from magnetar.core.quotas.uses import NAME_MAX, SEARCH_SECONDS, Uses, counted, counted_scope


class Used:
    """A use of which the test says everything."""

    def __init__(self, used_at: float = 0.0, wait: float = 0.0) -> None:
        self.used_at = used_at
        self.wait = wait

    def wait_seconds(self, now: float) -> float:
        del now
        return self.wait


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "ENTRIES_MAX", 20)


def filled(**of_all: float) -> tuple[Uses[int, Used], list[Used]]:
    found = Uses[int, Used](lambda one: one.used_at)
    every = [Used(**of_all) for _ in range(20)]
    for number, use in enumerate(every):
        assert not found.put(number, use, 0.0)
    return found, every


def kept(found: Uses[int, Used]) -> set[int]:
    return {number for number in range(100) if found.get(number) is not None}


def test_names_are_short() -> None:
    assert counted("a" * NAME_MAX) == "a" * NAME_MAX
    long = {counted("a" * NAME_MAX + more) for more in ("a", "b", "c" * 30_000)}
    assert len(long) == 3
    assert {len(each) for each in long | {counted("\u00e9"), counted("\ud800")}} == {32}
    assert counted("a" * 1000) == counted("a" * 1000)
    assert counted_scope(QuotaScope("u", client="c" * 1000)) == ("u", counted("c" * 1000), "")


def test_the_least_recently_used_go_first() -> None:
    found, every = filled()
    for number, use in enumerate(every):
        use.used_at = 1.0 if number < 5 else 0.5
    found.touch(5)
    assert found.put(20, Used(2.0), 2.0)
    assert kept(found) == set(range(21)) - {6, 7}, "a tenth"
    assert not found.put(21, Used(2.0), 2.0)
    assert len(found) == 20


def test_who_waits_stays() -> None:
    found, every = filled(wait=1.0)
    every[3].wait = every[4].wait = every[5].wait = 0.0
    assert found.put(20, Used(1.0, wait=1.0), 1.0)
    assert kept(found) == set(range(21)) - {3, 4}


def test_there_may_be_no_room() -> None:
    """A search looks at all, so the next is a while later; what is there may still be replaced."""
    found, every = filled(wait=1.0)
    assert not found.put(20, Used(), 1.0)
    every[0].wait = 0.0
    assert not found.put(20, Used(), 1.0 + SEARCH_SECONDS / 2)
    another = Used(wait=1.0)
    assert not found.put(1, another, 1.0)
    assert found.get(1) is another
    assert kept(found) == set(range(20))
    assert found.put(20, Used(), 1.0 + SEARCH_SECONDS)
    assert kept(found) == set(range(1, 21))
    found.clear()
    assert not kept(found)
