"""Each name is on exactly one page, in order, and long lists let other tasks run."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.administration import pages
from magnetar.wire.mqtt.administration.pages import page_of


async def _all_pages(names: list[str], limit: int) -> list[list[str]]:
    found, after = [], ""
    while True:
        page, following = await page_of(names, after, limit)
        found.append(page)
        if following is None:
            return found
        after = following


@given(
    names=st.sets(st.text(min_size=1, max_size=3), max_size=60),
    limit=st.integers(1, 20),
    data=st.data(),
)
def test_all_names_are_on_one_page_in_order(
    names: set[str], limit: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(sorted(names)))
    found = trio.run(_all_pages, shuffled, limit)
    assert [name for page in found for name in page] == sorted(names)
    assert all(len(page) == limit for page in found[:-1])


@given(
    sizes=st.lists(st.integers(1, 40), max_size=40),
    limit=st.integers(1, 50),
    data=st.data(),
)
def test_a_page_of_long_names_is_short(sizes: list[int], limit: int, data: st.DataObject) -> None:
    names = [chr(0x4E00 + number) * size for number, size in enumerate(sizes)]
    shuffled = data.draw(st.permutations(names))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "PAGE_CHARACTERS_MAX", 50)
        found = trio.run(_all_pages, shuffled, limit)
    assert [name for page in found for name in page] == names
    for page, following in pairwise(found):
        size = sum(map(len, page))
        assert len(page) <= limit
        assert size <= 50
        assert len(page) == limit or size + len(following[0]) > 50


async def test_other_tasks_run_while_a_long_list_is_searched() -> None:
    names = [f"device-{number * 7919 % 100_000:05}" for number in range(100_000)]
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begun = time.process_time()
            await trio.lowlevel.checkpoint()
            longest = max(longest, time.process_time() - begun)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        page, following = await page_of(names, "device-49999", 1_000)
        nursery.cancel_scope.cancel()
    assert page == [f"device-{number:05}" for number in range(50_000, 51_000)]
    assert following == "device-50999"
    assert longest < 0.1, "a turn takes a millisecond or two"
