"""Configs of groups are stored, and there again after a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite
from magnetar.wire.kafka.errors import INVALID_CONFIG, POLICY_VIOLATION, KafkaRefusal
from magnetar.wire.kafka.groups.configs import HEARTBEAT_MS, SESSION_MS
from magnetar.wire.kafka.groups.consumer.heartbeat import Timing
from magnetar.wire.kafka.groups.group_configs import CONFIGS, GROUP_BYTES, Configs, GroupConfigs
from magnetar.wire.kafka.groups.options import GroupOptions


def to(**own: str) -> Callable[[Configs], Configs]:
    names = {"session": SESSION_MS, "heartbeat": HEARTBEAT_MS}
    return lambda _: {names[name]: value for name, value in own.items()}


async def again(store: MemoryMetadata, bytes_max: int = 10_000) -> GroupConfigs:
    """As after a restart."""
    group_configs = GroupConfigs(store, GroupOptions(), bytes_max)
    await group_configs.open()
    return group_configs


async def test_from_the_first_word_to_the_last() -> None:
    store = MemoryMetadata()
    group_configs = await again(store)
    assert group_configs.names() == []
    assert group_configs.timing("a/b") == Timing(5.0, 45.0)
    await group_configs.change("a/b", to(session="50000"), for_real=True)
    for one in (group_configs, await again(store)):
        assert one.names() == ["a/b"]
        assert one.of("a/b") == {SESSION_MS: "50000"}
        assert one.timing("a/b") == Timing(5.0, 50.0)
    await group_configs.change("a/b", lambda own: own | {HEARTBEAT_MS: "6000"}, for_real=True)
    assert (await again(store)).timing("a/b") == Timing(6.0, 50.0)
    for _ in range(2):
        await group_configs.change("a/b", to(), for_real=True)
        assert (group_configs.names(), await store.children(CONFIGS)) == ([], [])


async def test_what_may_not_be_or_is_not_meant_changes_nothing() -> None:
    store = MemoryMetadata()
    group_configs = await again(store)
    await group_configs.change("g", to(session="50000"), for_real=False)
    with pytest.raises(KafkaRefusal) as refused:
        await group_configs.change("g", to(session="1"), for_real=True)
    assert refused.value.code == INVALID_CONFIG
    assert (group_configs.names(), await store.children(CONFIGS)) == ([], [])


async def test_what_cannot_be_stored_is_not_so() -> None:
    store = MemoryMetadata()
    group_configs = await again(store)

    async def fails(*_: object) -> int:
        raise StorageFailed("for now")

    put, store.put = store.put, fails  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        await group_configs.change("g", to(session="50000"), for_real=True)
    assert group_configs.names() == []
    store.put = put  # type: ignore[method-assign]
    await group_configs.change("g", to(session="50000"), for_real=True)


async def test_changes_of_two_brokers_are_both_kept() -> None:
    store = MemoryMetadata()
    ours, theirs = await again(store), await again(store)

    def add(**own: str) -> Callable[[Configs], Configs]:
        added = to(**own)
        return lambda present: present | added({})

    await ours.change("g", add(session="50000"), for_real=True)
    await theirs.change("g", add(heartbeat="6000"), for_real=True)
    await ours.change("g", add(session="51000"), for_real=True)
    both = {SESSION_MS: "51000", HEARTBEAT_MS: "6000"}
    assert ours.of("g") == (await again(store)).of("g") == both
    await theirs.change("g", to(), for_real=True)
    assert (theirs.names(), await store.children(CONFIGS)) == ([], [])
    await ours.change("g", add(heartbeat="7000"), for_real=True)
    assert ours.of("g") == (await again(store)).of("g") == {HEARTBEAT_MS: "7000"}


async def test_there_is_room_for_so_many() -> None:
    store = MemoryMetadata()
    group_configs = await again(store, bytes_max=2 * (GROUP_BYTES + 4))
    for name in "ab":
        await group_configs.change(name, to(session="50000"), for_real=True)
    with pytest.raises(KafkaRefusal) as refused:
        await group_configs.change("c", to(session="50000"), for_real=True)
    assert refused.value.code == POLICY_VIOLATION
    await group_configs.change("a", to(session="60000"), for_real=True)
    await group_configs.change("b", to(), for_real=True)
    await group_configs.change("c", to(session="50000"), for_real=True)
    assert (await again(store, bytes_max=2 * (GROUP_BYTES + 4))).names() == ["a", "c"]


async def test_a_start_takes_what_is_stored_even_if_there_is_room_for_less() -> None:
    store = MemoryMetadata()
    group_configs = await again(store)
    for name in "abc":
        await group_configs.change(name, to(session="50000"), for_real=True)
    smaller = await again(store, bytes_max=GROUP_BYTES + 4)
    assert smaller.names() == ["a", "b", "c"]
    await smaller.change("a", to(session="60000"), for_real=True)
    with pytest.raises(KafkaRefusal):
        await smaller.change("d", to(session="50000"), for_real=True)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b"[]"])
async def test_a_record_that_cannot_be_read_fails_its_group_alone(
    damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryMetadata()
    group_configs = await again(store)
    for name in "ab":
        await group_configs.change(name, to(session="50000"), for_real=True)
    await overwrite(store, f"{CONFIGS}/a", damage)
    group_configs = await again(store)
    assert group_configs.names() == ["b"]
    assert "group a: its configs cannot be read" in caplog.text
    assert group_configs.timing("a") == Timing(5.0, 45.0)
    with pytest.raises(Corrupted):
        await group_configs.change("a", to(session="60000"), for_real=True)
    assert await store.get(f"{CONFIGS}/a") is not None
