"""Metadata of many ledgers at once: of those that exist, whatever lies between them."""

from pathlib import Path

import trio

from magnetar.bookie.format.ledger_metadata import SHORT_ID_MAX, path_of
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.storage.embedded_places import (
    RUN_MAX,
    SPREAD_MAX,
    EmbeddedPlaces,
    are_together,
)


def test_what_is_near_together_is_read_together() -> None:
    assert are_together([7])
    assert are_together(range(RUN_MAX))
    assert are_together(range(0, 100, SPREAD_MAX))
    assert not are_together(range(0, 100, 2 * SPREAD_MAX))
    assert not are_together([9_999, 10_000]), "others may be between"
    assert not are_together([SHORT_ID_MAX, SHORT_ID_MAX + 1])


async def test_those_that_exist_are_found(tmp_path: Path) -> None:
    near, edge = range(600), [9_998, 9_999, 10_000, 10_001, SHORT_ID_MAX, SHORT_ID_MAX + 1]
    there = [each for each in (*near, *edge, 1 << 40) if each not in (3, 5, 577)]
    async with open_embedded(tmp_path / "metadata") as store:
        async with trio.open_nursery() as nursery:
            for each in there:
                nursery.start_soon(store.put, path_of(each), b"%d" % each, ABSENT)
        places = EmbeddedPlaces(store, "one", "")
        values = {each: b"%d" % each for each in there}
        wanted = [*near, *edge, 1 << 40, 1 << 50]
        assert await places.metadata(wanted[::-1]) == values
        for some in (edge, [0, 2], [2, 3, 4], [0, 0, 2], range(250), [3, 5], []):
            expected = {each: values[each] for each in some if each in values}
            assert await places.metadata(some) == expected
        assert places.bookies() == {}
