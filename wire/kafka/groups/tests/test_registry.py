"""The list of what groups have committed outlives whoever wrote it."""

from core.metadata.memory import MemoryMetadata
from wire.kafka.groups.registry import Registry

ODD = "a/b group\N{SNOWMAN}"


async def test_what_is_added_is_there_for_others() -> None:
    metadata = MemoryMetadata()
    mine = Registry(metadata)
    assert await mine.groups() == []
    await mine.add(ODD, ("t", 0))
    await mine.add(ODD, ("t", 1))
    await mine.add(ODD, ("t", 0))
    await mine.add("g", ("u", 0))
    other = Registry(metadata)
    assert await other.groups() == sorted([ODD, "g"])
    assert await other.partitions(ODD) == {("t", 0), ("t", 1)}
    assert await other.partitions("nobody") == set()


async def test_the_last_one_takes_the_group_along() -> None:
    metadata = MemoryMetadata()
    registry = Registry(metadata)
    await registry.add("g", ("t", 0))
    await registry.add("g", ("t", 1))
    await registry.remove("g", ("t", 0))
    assert await Registry(metadata).partitions("g") == {("t", 1)}
    await registry.remove("g", ("t", 1))
    await registry.remove("g", ("t", 1))
    assert await Registry(metadata).groups() == []
