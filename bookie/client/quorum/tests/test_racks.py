import pytest
import trio.testing

from magnetar.bookie.client.quorum.placement import DEFAULT_RACK
from magnetar.bookie.client.quorum.racks import PATH, Racks, decode
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite

STORED = b"""{
    "default": {"a:3181": {"rack": "/r1", "hostname": "a"}},
    "more": {"b:1": {"rack": "r2"}}
}"""


def test_what_the_tools_write_is_understood() -> None:
    assert decode(STORED) == {"a:3181": "/r1", "b:1": "/r2"}
    for value in (b"[]", b"?", b'{"a": 1}', b'{"g": {"b": {"rack": 1}}}'):
        with pytest.raises(ValueError, match=r".+"):
            decode(value)


async def test_the_racks_follow_the_store(nursery) -> None:
    store = MemoryMetadata()
    racks = Racks(store)
    await nursery.start(racks.run)
    assert racks.rack_of("a:3181") == DEFAULT_RACK
    await overwrite(store, PATH, STORED)
    await trio.testing.wait_all_tasks_blocked()
    assert racks.rack_of("a:3181") == "/r1"
    await overwrite(store, PATH, b"makes no sense")
    await trio.testing.wait_all_tasks_blocked()
    assert (racks.rack_of("a:3181"), racks.rack_of("c:1")) == ("/r1", DEFAULT_RACK)
