"""`/admin/v2/bookies` of a gateway, and of a server that has no bookies."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from magnetar.core.ports.metadata_store import ABSENT
from magnetar.wire.http.admin.bookies import PATH
from magnetar.wire.http.bookie.tests.bookies import MemoryCluster
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

RACKS = "/admin/v2/bookies/racks-info"


@pytest.fixture
async def gateway() -> AsyncIterator[Visitor]:
    async with visiting(msgspec.structs.replace(OPTIONS, bookies=MemoryCluster())) as made:
        yield made


async def test_all_bookies_are_those_with_a_cookie(gateway: Visitor) -> None:
    known = await MemoryCluster().known_bookies()
    found = await gateway.get("/admin/v2/bookies/all")
    assert found == {"bookies": [{"bookieId": bookie} for bookie in known]}
    assert known


async def test_racks_are_set_read_and_deleted(gateway: Visitor) -> None:
    one, two = {"rack": "/r1", "hostname": "h"}, {"rack": "/r2", "hostname": ""}
    assert await gateway.get(RACKS) == {}
    await gateway.does("POST", f"{RACKS}/a:3181?group=default", one)
    await gateway.does("POST", f"{RACKS}/b:3181?group=default", {"rack": "/r2"})
    assert await gateway.get(RACKS) == {"default": {"a:3181": one, "b:3181": two}}
    assert await gateway.get(f"{RACKS}/b:3181") == two
    await gateway.does("POST", f"{RACKS}/a:3181?group=other", two)
    assert await gateway.get(RACKS) == {"default": {"b:3181": two}, "other": {"a:3181": two}}
    await gateway.does("DELETE", f"{RACKS}/a:3181")
    assert await gateway.get(RACKS) == {"default": {"b:3181": two}}
    await gateway.fails(404, "DELETE", f"{RACKS}/a:3181")
    await gateway.fails(404, "GET", f"{RACKS}/a:3181")


async def test_what_makes_no_sense_is_refused(gateway: Visitor) -> None:
    await gateway.fails(412, "POST", f"{RACKS}/a:3181", {"rack": "/r1"})
    for rack in ("", "/", " "):
        await gateway.fails(412, "POST", f"{RACKS}/a:3181?group=default", {"rack": rack})
    await gateway.fails(400, "POST", f"{RACKS}/a:3181?group=default", b"{")
    await gateway.broker.metadata.put(PATH, b"[1]", ABSENT)
    assert "make no sense" in await gateway.fails(500, "GET", RACKS)


async def test_what_others_have_written_stays(gateway: Visitor) -> None:
    stored = {"default": {"b:1": {"rack": "/r", "hostname": "", "later": 1}}}
    await gateway.broker.metadata.put(PATH, msgspec.json.encode(stored), ABSENT)
    await gateway.does("POST", f"{RACKS}/a:1?group=g", {"rack": "/r1", "hostname": "x"})
    found = await gateway.get(RACKS)
    assert found == {**stored, "g": {"a:1": {"rack": "/r1", "hostname": "x"}}}


async def test_a_server_with_storage_of_its_own_has_none_to_place(visitor: Visitor) -> None:
    assert await visitor.get("/admin/v2/bookies/all") == {"bookies": []}
    assert await visitor.get(RACKS) == {}
    await visitor.fails(405, "POST", f"{RACKS}/a:3181?group=default", {"rack": "/r1"})
    await visitor.fails(405, "DELETE", f"{RACKS}/a:3181")
