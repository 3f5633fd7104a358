"""Records that several kinds of configs share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magnetar.core.metadata.config_records import change_configs, configs_at, quoted, unquoted
from magnetar.core.metadata.memory import MemoryMetadata


@pytest.mark.parametrize("name", ["a", "a b", "a/b", ".", "..", "<default>", "%2E", "ü", "a+*"])
def test_a_name_is_one_part_of_a_path(name: str) -> None:
    part = quoted(name)
    assert "/" not in part
    assert part.strip(".")
    assert unquoted(part) == name


def test_a_name_is_not_that_of_all_others() -> None:
    assert quoted("<default>") == "%3Cdefault%3E"


async def test_a_record_is_that_of_zookeeper() -> None:
    metadata = MemoryMetadata()
    assert await change_configs(metadata, "/config/users/a", lambda _: {"x": "1"})
    found = await metadata.get("/config/users/a")
    assert found is not None
    assert json.loads(found.value) == {"version": 1, "config": {"x": "1"}}
    assert await configs_at(metadata, "/config/users/a") == {"x": "1"}
    assert await configs_at(metadata, "/config/users/b") == {}


async def test_one_without_configs_is_deleted() -> None:
    metadata = MemoryMetadata()
    assert await change_configs(metadata, "/c", lambda _: {"x": "1"})
    assert not await change_configs(metadata, "/c", lambda _: None)
    assert await metadata.get("/c") is not None
    assert await change_configs(metadata, "/c", lambda _: {})
    assert await metadata.get("/c") is None
    assert await change_configs(metadata, "/c", lambda _: {})


class Raced(MemoryMetadata):
    """A store in which another broker writes before the first write of this one."""

    async def put(self, path: str, value: bytes, expected: int) -> int:
        rival, self.rival = self.rival, b""
        if rival:
            await super().put(path, rival, expected)
        return await super().put(path, value, expected)

    rival = b'{"version":1,"config":{"theirs":"1"}}'


@pytest.mark.parametrize("before", [{}, {"old": "0"}])
async def test_what_another_broker_writes_is_not_lost(before: dict[str, str]) -> None:
    metadata = Raced()
    rival, metadata.rival = metadata.rival, b""
    if before:
        await change_configs(metadata, "/c", lambda _: before)
    metadata.rival = rival

    def add(configs: dict[str, Any]) -> dict[str, Any]:
        return {**configs, "ours": "2"}

    assert await change_configs(metadata, "/c", add)
    assert await configs_at(metadata, "/c") == {"theirs": "1", "ours": "2"}
