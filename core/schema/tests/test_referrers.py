"""A version that another schema refers to stays."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from magnetar.core.kernel.errors import IncompatibleSchema, NotAllowed, NotFound
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.schema import records, referrers
from magnetar.core.schema.records import Subject
from magnetar.core.schema.registry import SchemaRegistry
from magnetar.core.schema.schema import SchemaKind, SchemaReference, TopicSchema
from magnetar.core.schema.tests.test_registry import ANY, FULL, NAME, made
from magnetar.core.schema.tests.test_verdicts import MORE_OR_0, ONE
from magnetar.core.testing.clock import FixedClock

USER = Subject("user")
OTHER = Subject("other")


@pytest.fixture
def metadata() -> MemoryMetadata:
    return MemoryMetadata()


def of_r(name: str = "U", subject: str = "t-value", version: int = 1) -> TopicSchema:
    """A schema with a field of type R, which is that of a topic."""
    text = f'{{"type": "record", "name": "{name}", "fields": [{{"name": "r", "type": "R"}}]}}'
    reference = SchemaReference("R", subject, version)
    return TopicSchema(SchemaKind.AVRO, text.encode(), references=(reference,))


async def id_of(schemas: SchemaRegistry, subject: Subject) -> int:
    latest = (await schemas.versions(subject)).latest
    assert latest is not None
    return latest.id


async def test_a_version_that_is_referred_to_is_not_deleted(metadata: MemoryMetadata) -> None:
    schemas, other = made(metadata), made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await schemas.add(NAME, MORE_OR_0, FULL)
    await schemas.add(USER, of_r(), FULL)
    user_id = await id_of(schemas, USER)
    for broker in (schemas, other, made(metadata)):
        assert await broker.referrers(NAME, 0) == [user_id]
        assert await broker.referrers(NAME, 1) == []
        for delete in (broker.hide, broker.forget_unreferred):
            with pytest.raises(NotAllowed, match=f"schema {user_id} refers to version 1"):
                await delete(NAME)
        with pytest.raises(NotAllowed):
            await broker.hide_one(NAME, 0)
    assert await other.hide_one(NAME, 1), "nothing refers to this one"
    stored = await made(metadata).by_id(user_id)
    assert stored.schema == of_r(), "with its references"


async def test_what_is_hidden_refers_still(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await schemas.add(USER, of_r(), FULL)
    user_id = await id_of(schemas, USER)
    await schemas.hide(USER)
    assert await schemas.referrers(NAME, 0) == []
    assert await schemas.referrers(NAME, 0, hidden=True) == [user_id]
    with pytest.raises(NotAllowed):
        await schemas.hide(NAME)
    assert await schemas.forget_one(USER, 0)
    assert await schemas.hide(NAME) == 1
    assert (await schemas.versions(NAME)).referrers == {}


async def test_a_topic_that_is_deleted_leaves_what_others_need(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await schemas.add(USER, of_r(), FULL)
    await schemas.forget(NAME)
    await schemas.forget_all(NamespaceName.parse("public/default"))
    assert await schemas.latest(NAME) is None
    assert await made(metadata).find(USER, of_r()) is not None
    assert await made(metadata).add(USER, of_r("U"), FULL) == 0
    await schemas.forget(USER)
    await schemas.forget(NAME)
    assert await metadata.children(records.BY_ID) == []


async def test_a_list_that_refers_to_itself_is_deleted_as_a_whole(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    await schemas.add(NAME, ONE, ANY)
    assert await schemas.add(NAME, of_r(), ANY) == 1
    with pytest.raises(NotAllowed):
        await schemas.hide_one(NAME, 0)
    assert await schemas.hide(NAME) == 2
    await schemas.forget_unreferred(NAME)
    assert await metadata.children(records.BY_ID) == []


@pytest.mark.parametrize(
    "schema", [of_r(subject="none"), of_r(version=2), of_r(version=0), of_r(version=-7)]
)
async def test_references_to_nothing(metadata: MemoryMetadata, schema: TopicSchema) -> None:
    schemas = made(metadata)
    await schemas.add(NAME, ONE, FULL)
    with pytest.raises(IncompatibleSchema, match="which is not there"):
        await schemas.add(USER, schema, FULL)
    assert await schemas.versions(USER) == records.SchemaVersions()


async def test_what_is_hidden_is_not_referred_to_anew(metadata: MemoryMetadata) -> None:
    schemas = made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await schemas.hide(NAME)
    with pytest.raises(IncompatibleSchema, match="which is not there"):
        await schemas.add(USER, of_r(), FULL)
    assert len(await metadata.children(records.BY_ID)) == 1, "the record was removed"


async def test_a_broker_that_is_killed_in_between(metadata: MemoryMetadata) -> None:
    """Its note counts until the registration must be over."""
    clock = FixedClock()
    schemas = SchemaRegistry(metadata, clock)
    await schemas.add(NAME, ONE, FULL)
    await schemas.add(USER, of_r(), FULL)
    stored = await metadata.get(records.path_of(USER))
    assert stored is not None
    await metadata.delete(records.path_of(USER), stored.version)
    later = SchemaRegistry(metadata, clock)
    with pytest.raises(NotAllowed):
        await later.hide(NAME)
    clock.forward(referrers.REGISTERING_MS_MAX / 1_000)
    assert await later.hide(NAME) == 1


async def test_the_limit_of_notes(
    metadata: MemoryMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(referrers, "REFERRERS_MAX", 1)
    schemas = made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await schemas.add(USER, of_r(), FULL)
    with pytest.raises(IncompatibleSchema, match="1 schemas refer"):
        await schemas.add(OTHER, of_r(), FULL)
    with pytest.raises(NotFound):
        await schemas.by_id(3)


async def test_compared_by_what_they_refer_to(metadata: MemoryMetadata) -> None:
    """The text stays, and what it means does not."""
    schemas = made(metadata)
    await schemas.add(NAME, ONE, ANY)
    text = b'{"type": "record", "name": "R", "fields": [{"name": "z", "type": "string"}]}'
    await schemas.add(NAME, TopicSchema(SchemaKind.AVRO, text), ANY)
    await schemas.add(NAME, MORE_OR_0, ANY)
    await schemas.add(USER, of_r(), FULL)
    with pytest.raises(IncompatibleSchema, match="z"):
        await schemas.add(USER, of_r(version=2), FULL)
    assert await schemas.add(USER, of_r(version=3), FULL) == 1


class Yielding(MemoryMetadata):
    """Lets others run before each read and write."""

    async def get(self, path: str) -> Any:
        await trio.lowlevel.checkpoint()
        return await super().get(path)

    async def put(self, path: str, value: bytes, expected: int) -> int:
        await trio.lowlevel.checkpoint()
        return await super().put(path, value, expected)

    async def delete(self, path: str, expected: int) -> None:
        await trio.lowlevel.checkpoint()
        await super().delete(path, expected)

    async def next(self, path: str) -> int:
        await trio.lowlevel.checkpoint()
        return await super().next(path)


@pytest.mark.parametrize("later", range(16))
async def test_one_broker_deletes_what_another_one_refers_to(later: int) -> None:
    """Whichever is first: a schema never refers to what is hidden."""
    metadata = Yielding()
    schemas, other = made(metadata), made(metadata)
    await schemas.add(NAME, ONE, FULL)
    await other.versions(NAME)
    done: list[str] = []

    async def refer() -> None:
        with suppress(IncompatibleSchema):
            await schemas.add(USER, of_r(), FULL)
            done.append("referred")

    async def delete() -> None:
        for _ in range(later):
            await trio.lowlevel.checkpoint()
        with suppress(NotAllowed):
            await other.hide(NAME)
            done.append("hidden")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(refer)
        nursery.start_soon(delete)
    assert len(done) == 1
    assert (await made(metadata).latest(NAME) is None) == (done == ["hidden"])
    assert (await made(metadata).latest(USER) is None) == (done == ["hidden"])
