"""What is stored of a group."""

from core.metadata.memory import MemoryMetadata
from wire.kafka.groups.records import GROUPS, Record, Records


async def test_from_the_first_commit_to_the_end() -> None:
    store = MemoryMetadata()
    records = Records(store)
    await records.note("a/b", "classic", "consumer", 0)
    assert await records.names() == [], "who commits nothing leaves nothing"
    await records.ensure("a/b", Record("classic", "consumer"))
    await records.ensure("a/b", Record())
    assert await Records(store).find("a/b") == Record("classic", "consumer")
    await records.note("a/b", "consumer", "consumer", 7)
    assert await Records(store).find("a/b") == Record("consumer", "consumer", 7)
    await records.ensure("a/b", Record(ages_early=True))
    assert await records.find("a/b") == Record("consumer", "consumer", 7, ages_early=True)
    assert await records.names() == ["a/b"]
    await records.delete("a/b")
    await records.delete("a/b")
    assert await records.find("a/b") is None
    assert await store.children(GROUPS) == []


async def test_nothing_is_written_that_is_known() -> None:
    store = MemoryMetadata()
    records = Records(store)
    await records.ensure("g", Record())
    written: list[str] = []
    store.watch(GROUPS, written.append)
    await records.ensure("g", Record())
    await records.note("g", "classic", "", 0)
    assert written == []
