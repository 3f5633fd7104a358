"""The registry over a store: versions, deletions, and two brokers that add at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from magnetar.core.kernel.errors import BadVersion, IncompatibleSchema, NotFound, StorageFailed
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.schema import definitions, records, registry, serializer_kinds
from magnetar.core.schema.avro import parser
from magnetar.core.schema.protobuf import reader
from magnetar.core.schema.registry import SchemaRegistry
from magnetar.core.schema.schema import SchemaKind, TopicSchema
from magnetar.core.schema.tests.test_verdicts import MORE, MORE_OR_0, ONE, X, avro
from magnetar.core.testing.clock import FixedClock

NAME = TopicName.parse("t")
FULL = SchemaStrategy.FULL
ANY = SchemaStrategy.ALWAYS_COMPATIBLE


def made(metadata: MemoryMetadata, **more: Any) -> SchemaRegistry:
    schemas = SchemaRegistry(metadata, FixedClock(), **more)
    schemas.open()
    return schemas


@pytest.fixture
def metadata() -> MemoryMetadata:
    return MemoryMetadata()


@pytest.fixture
def schemas(metadata: MemoryMetadata) -> SchemaRegistry:
    return made(metadata)


async def test_versions(schemas: SchemaRegistry) -> None:
    assert await schemas.latest(NAME) is None
    assert await schemas.add(NAME, ONE, FULL, user="me") == 0
    assert await schemas.add(NAME, MORE_OR_0, FULL) == 1
    assert await schemas.add(NAME, ONE, FULL) == 0
    latest = await schemas.latest(NAME)
    assert latest is not None
    assert (latest[0], latest[1].schema) == (1, MORE_OR_0)
    first = await schemas.numbered(NAME, 0)
    assert first is not None
    assert (first.schema, first.user, first.path) == (ONE, "me", records.path_of(NAME))
    assert await schemas.numbered(NAME, 2) is None
    assert [version for version, _ in await schemas.all_of(NAME)] == [0, 1]


async def test_a_partition_has_those_of_its_topic(schemas: SchemaRegistry) -> None:
    await schemas.add(NAME.partition(3), ONE, FULL)
    assert await schemas.find(NAME.partition(1), ONE) == (await schemas.versions(NAME)).latest


async def test_what_may_not_follow_changes_nothing(schemas: SchemaRegistry) -> None:
    await schemas.add(NAME, ONE, FULL)
    with pytest.raises(IncompatibleSchema, match="no default"):
        await schemas.add(NAME, MORE, FULL)
    with pytest.raises(IncompatibleSchema, match="no JSON"):
        await schemas.add(NAME, TopicSchema(SchemaKind.AVRO, b"{"), ANY)
    assert len((await schemas.versions(NAME)).versions) == 1
    assert await schemas.find(NAME, MORE) is None


async def test_transitive_strategies_look_at_all_versions(schemas: SchemaRegistry) -> None:
    """The third adds a field that the second has: readers of it do not read the first."""
    for schema in (avro(X), MORE):
        await schemas.add(NAME, schema, ANY)
    third = avro(*json.loads(MORE.definition)["fields"], {**X, "name": "z", "default": 1})
    with pytest.raises(IncompatibleSchema):
        await schemas.add(NAME, third, SchemaStrategy.BACKWARD_TRANSITIVE)
    assert await schemas.add(NAME, third, SchemaStrategy.BACKWARD) == 2


async def test_only_known_schemas(schemas: SchemaRegistry) -> None:
    with pytest.raises(IncompatibleSchema, match="auto updating is disabled"):
        await schemas.add(NAME, ONE, FULL, may_be_new=False)
    await schemas.add(NAME, ONE, FULL)
    assert await schemas.add(NAME, ONE, FULL, may_be_new=False) == 0


async def test_consumers(schemas: SchemaRegistry) -> None:
    await schemas.add(NAME, ONE, FULL)
    await schemas.check_consumer(NAME, ONE, FULL)
    await schemas.check_consumer(NAME, MORE_OR_0, SchemaStrategy.FORWARD)
    with pytest.raises(IncompatibleSchema):
        await schemas.check_consumer(NAME, MORE, SchemaStrategy.FORWARD)
    with pytest.raises(IncompatibleSchema):
        await schemas.check_consumer(NAME, ONE, SchemaStrategy.ALWAYS_INCOMPATIBLE)
    await schemas.check_consumer(NAME, MORE, ANY)


async def test_a_deletion_hides_what_was_before(schemas: SchemaRegistry) -> None:
    assert await schemas.hide(NAME) is None
    await schemas.add(NAME, ONE, FULL)
    assert await schemas.hide(NAME) == 1
    assert await schemas.latest(NAME) is None
    assert await schemas.numbered(NAME, 0) is None
    assert await schemas.add(NAME, MORE, FULL) == 2
    assert await schemas.add(NAME, MORE, FULL) == 2


@pytest.mark.parametrize(
    "schema",
    [
        ONE,
        TopicSchema(SchemaKind.JSON_SCHEMA, b'{"type": "string"}'),
        TopicSchema(SchemaKind.PROTOBUF_TEXT, b'syntax = "proto3"; message M {}'),
    ],
    ids=lambda schema: schema.kind.name,
)
async def test_a_definition_is_read_once(
    schemas: SchemaRegistry, schema: TopicSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many producers and serializers have it."""
    read = []
    json_of, parsed = definitions.json_of, reader._parsed

    def counted(text: bytes) -> Any:
        read.append(text)
        return json_of(text)

    def counted_text(text: bytes, name: str) -> Any:
        read.append(text)
        return parsed(text, name)

    for module in (parser, serializer_kinds):
        monkeypatch.setattr(module, "json_of", counted)
    monkeypatch.setattr(reader, "_parsed", counted_text)
    for _ in range(3):
        await schemas.check_valid(schema)
        assert await schemas.add(NAME, schema, FULL) == 0
        assert await schemas.find(NAME, schema) is not None
    assert read == [schema.definition]


async def test_one_version_is_hidden_and_then_forgotten(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    for schema in (ONE, MORE_OR_0):
        await schemas.add(NAME, schema, FULL)
    first = (await schemas.versions(NAME)).versions[0]
    assert not await schemas.forget_one(NAME, 0), "it is not hidden"
    assert not await schemas.hide_one(NAME, 2)
    assert await schemas.hide_one(NAME, 0)
    assert not await schemas.hide_one(NAME, 0)
    assert await schemas.numbered(NAME, 0) is None
    assert (await schemas.by_id(first.id)).schema == ONE, "for readers of what was written with it"
    assert await schemas.add(NAME, ONE, FULL) == 2
    assert await schemas.forget_one(NAME, 0)
    assert not await schemas.forget_one(NAME, 0)
    for other in (schemas, made(metadata)):
        with pytest.raises(NotFound):
            await other.by_id(first.id)
        assert [each.version for each in (await other.versions(NAME)).versions] == [1, 2]


async def test_a_subject_has_a_strategy_of_its_own(metadata: MemoryMetadata) -> None:
    schemas, subject = made(metadata), records.Subject("org.Order")
    await schemas.decide(subject, FULL)
    assert (await made(metadata).versions(subject)).strategy == "FULL"
    await schemas.add(subject, ONE, FULL)
    assert await schemas.hide(subject) == 1
    assert (await schemas.versions(subject)).strategy == "FULL"
    await schemas.decide(subject, None)
    assert (await schemas.versions(subject)).strategy == ""
    await schemas.forget(subject)
    assert await metadata.children(records.SUBJECTS) == []


async def test_who_changes_a_list_at_the_same_time_changes_what_the_other_has_left() -> None:
    metadata = MemoryMetadata()
    one, other = made(metadata), made(metadata)
    await one.add(NAME, ONE, FULL)
    await one.add(NAME, MORE_OR_0, FULL)
    await other.versions(NAME)
    gone: list[bool] = []

    async def hide(schemas: SchemaRegistry) -> None:
        gone.append(await schemas.hide_one(NAME, 0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hide, one)
        nursery.start_soon(hide, other)
    assert sorted(gone) == [False, True]
    assert (await made(metadata).versions(NAME)).count == 2


async def test_what_is_forgotten_leaves_nothing(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await schemas.hide(NAME)
    await schemas.add(NAME, MORE, FULL)
    await schemas.forget(NAME)
    await schemas.forget(NAME)
    assert await metadata.children(records.LISTS) == []
    assert await metadata.children(records.BY_ID) == []
    with pytest.raises(NotFound):
        await schemas.by_id(1)
    assert await schemas.add(NAME, ONE, FULL) == 0


async def test_a_namespace_is_forgotten(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    for name in ("a", "b/c/d", "public/default/e f"):
        await schemas.add(TopicName.parse(name), ONE, FULL)
    await schemas.forget_all(NamespaceName.parse("public/default"))
    assert await metadata.children(records.LISTS) == ["b"]


async def test_after_a_restart(metadata: MemoryMetadata) -> None:
    await made(metadata).add(NAME, ONE, FULL)
    again = made(metadata)
    assert await again.add(NAME, ONE, FULL) == 0
    found = await again.numbered(NAME, 0)
    assert found is not None
    assert found.schema == ONE


# -- several at a time ---------------------------------------------------------------------------


async def test_a_hundred_producers_add_one_version(metadata: MemoryMetadata) -> None:
    schemas, versions = made(metadata), []

    async def add() -> None:
        versions.append(await schemas.add(NAME, ONE, FULL))

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(add)
    assert versions == [0] * 100
    assert await metadata.children(records.BY_ID) == ["1"]


class Interrupted(MemoryMetadata):
    """Lets another broker write its list just before this one does."""

    def __init__(self) -> None:
        super().__init__()
        self.other: Any = None

    async def put(self, path: str, value: bytes, expected: int) -> int:
        other = self.other
        if path.startswith(f"{records.LISTS}/") and other is not None:
            self.other = None
            await other()
        return await super().put(path, value, expected)


async def test_of_two_brokers_the_second_compares_with_the_first() -> None:
    metadata = Interrupted()
    one, other = made(metadata), made(metadata)

    async def add_first() -> None:
        assert await other.add(NAME, ONE, FULL) == 0

    metadata.other = add_first
    assert await one.add(NAME, MORE_OR_0, FULL) == 1
    assert [found.schema for _, found in await one.all_of(NAME)] == [ONE, MORE_OR_0]
    assert len(await metadata.children(records.BY_ID)) == 2  # what the loser wrote is gone


async def test_the_second_is_refused_if_it_does_not_follow_the_first() -> None:
    metadata = Interrupted()
    one, other = made(metadata), made(metadata)

    async def add_first() -> None:
        await other.add(NAME, ONE, FULL)

    metadata.other = add_first
    with pytest.raises(IncompatibleSchema):
        await one.add(NAME, MORE, FULL)
    assert len(await metadata.children(records.BY_ID)) == 1


async def test_who_always_loses_gives_up() -> None:
    metadata = Interrupted()
    schemas, numbers = made(metadata), iter(range(1_000))

    async def again() -> None:
        path = records.path_of(NAME)
        found = await metadata.get(path)
        value = b'{"next_version": %d}' % next(numbers)
        await MemoryMetadata.put(metadata, path, value, -1 if found is None else found.version)
        metadata.other = again

    metadata.other = again
    with pytest.raises(BadVersion):
        await schemas.add(NAME, ONE, FULL)
    assert await metadata.children(records.BY_ID) == []


async def test_a_version_that_another_broker_has_added_is_found(metadata: MemoryMetadata) -> None:
    one, other = made(metadata), SchemaRegistry(metadata, FixedClock())  # which hears of nothing
    assert await other.latest(NAME) is None
    await one.add(NAME, ONE, FULL)
    found = await other.numbered(NAME, 0)
    assert found is not None
    assert found.schema == ONE


class Behind(MemoryMetadata):
    """One of several servers of a store: it reads what others have written once it catches up."""

    def __init__(self, whole: MemoryMetadata) -> None:
        super().__init__()
        self._whole = whole

    async def put(self, path: str, value: bytes, expected: int) -> int:
        return await self._whole.put(path, value, expected)

    async def delete(self, path: str, expected: int) -> None:
        await self._whole.delete(path, expected)

    async def next(self, path: str) -> int:
        return await self._whole.next(path)

    async def sync(self) -> None:
        self._values = dict(self._whole._values)


async def test_a_broker_whose_server_is_behind(metadata: MemoryMetadata) -> None:
    one = made(metadata)

    def other() -> SchemaRegistry:
        return made(Behind(metadata))

    await one.add(NAME, ONE, FULL)
    assert (await other().by_id(1)).schema == ONE
    assert await other().add(NAME, MORE_OR_0, FULL) == 1
    late = other()
    await late.add(NAME, MORE_OR_0, FULL)
    await one.add(NAME, avro({**X, "default": 0}), ANY)
    assert await late.hide(NAME) == 3
    await one.add(NAME, ONE, ANY)
    await late.forget(NAME)
    assert await metadata.children(records.BY_ID) == []
    with pytest.raises(NotFound):
        await other().by_id(1)


class Full(MemoryMetadata):
    """Takes no list."""

    async def put(self, path: str, value: bytes, expected: int) -> int:
        if path.startswith(f"{records.LISTS}/"):
            raise StorageFailed("the disk is full")
        return await super().put(path, value, expected)


async def test_a_list_that_cannot_be_written() -> None:
    schemas = made(Full())
    with pytest.raises(StorageFailed):
        await schemas.add(NAME, ONE, FULL)
    assert await schemas.latest(NAME) is None


# -- limits --------------------------------------------------------------------------------------


async def test_the_limit_of_a_definition(metadata: MemoryMetadata) -> None:
    schemas = made(metadata, size_max=ONE.size)
    await schemas.add(NAME, ONE, FULL)
    with pytest.raises(IncompatibleSchema, match=f"may have {ONE.size}"):
        await schemas.add(NAME, MORE_OR_0, FULL)


async def test_the_limit_of_versions(
    schemas: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "VERSIONS_MAX", 2)
    for number in range(2):
        await schemas.add(NAME, avro({**X, "default": number}), ANY)
    await schemas.hide(NAME)
    with pytest.raises(IncompatibleSchema, match=r"2 versions.*deleted for good"):
        await schemas.add(NAME, ONE, ANY)
    await schemas.forget_unreferred(NAME)
    assert await schemas.add(NAME, ONE, ANY) == 0


async def test_large_definitions_which_a_thread_compares(schemas: SchemaRegistry) -> None:
    fields = [{"name": f"f{number}", "type": "string"} for number in range(1_000)]
    large = avro(*fields)
    assert large.size > registry.AT_ONCE_BYTES
    assert await schemas.add(NAME, large, FULL) == 0
    assert await schemas.add(NAME, avro(*fields, {**X, "default": 0}), FULL) == 1
    with pytest.raises(IncompatibleSchema):
        await schemas.add(NAME, avro(*fields, {**X, "name": "y"}), FULL)
