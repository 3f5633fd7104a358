"""Schemas as playbooks: what is added, found, compared and refused, in Pulsar's own words."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.schema.registry import AT_ONCE_BYTES
from magnetar.core.schema.schema import SchemaKind
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage, kinds
from magnetar.wire.pulsar.session.schemas import version_bytes, version_of
from magnetar.wire.pulsar.tests import peer

ONE = b'{"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}'
MORE = ONE[:-2] + b', {"name": "y", "type": "int"}]}'
MORE_OR_0 = ONE[:-2] + b', {"name": "y", "type": "int", "default": 0}]}'
FIRST, SECOND = version_bytes(0), version_bytes(1)


def avro(definition: bytes, kind: pb.Schema.Type = pb.Schema.AVRO) -> pb.Schema:
    return pb.Schema(name="R", type=kind, schema_data=definition)


ANY = avro(b"", pb.Schema.AUTO_CONSUME)
BYTES = avro(b"", pb.Schema.NONE)


async def produces(client: Player, number: int, schema: pb.Schema | None, topic: str = "t") -> Any:
    """The answer to PRODUCER."""
    more = {} if schema is None else {"schema": schema}
    return await client.says_one(peer.producer(number, number, topic, **more))


async def consumes(client: Player, number: int, schema: pb.Schema | None, topic: str = "t") -> Any:
    """The answer to SUBSCRIBE."""
    more = {} if schema is None else {"schema": schema}
    return (await client.says(peer.subscribe(number, number, topic, f"s{number}", **more)))[0]


async def asks(client: Player, topic: str = "t", version: bytes | None = None) -> Any:
    """The answer to GET_SCHEMA."""
    more = {} if version is None else {"schema_version": version}
    message = pb.CommandGetSchema(request_id=9, topic=topic, **more)
    received = await client.says_one(peer.frame("GET_SCHEMA", message))
    assert received.kind == "GET_SCHEMA_RESPONSE"
    assert received.body.request_id == 9
    return received.body


async def brings(client: Player, schema: pb.Schema, topic: str = "t") -> Any:
    """The answer to GET_OR_CREATE_SCHEMA."""
    message = pb.CommandGetOrCreateSchema(request_id=9, topic=topic, schema=schema)
    received = await client.says_one(peer.frame("GET_OR_CREATE_SCHEMA", message))
    assert received.kind == "GET_OR_CREATE_SCHEMA_RESPONSE"
    return received.body


async def decides(stage: Stage, **policies: Any) -> None:
    """Change the policies of the namespace."""
    namespace = NamespaceName.parse("public/default")
    await stage.broker.catalog.set_policies(namespace, NamespacePolicies(**policies))
    await stage.broker.apply_policies(namespace)


# -- producers -----------------------------------------------------------------------------------


async def test_versions_of_a_producer(stage: Stage) -> None:
    client = await stage.player()
    assert (await produces(client, 1, None)).body.schema_version == b""
    assert (await produces(client, 2, BYTES)).body.schema_version == b""
    assert (await produces(client, 3, avro(ONE))).body.schema_version == FIRST
    assert (await produces(client, 4, avro(MORE_OR_0))).body.schema_version == SECOND
    await stage.broker.topic(TopicName.parse("t-partition-0"), any_name=True)
    assert (await produces(client, 5, avro(ONE), "t-partition-0")).kind == "PRODUCER_SUCCESS"
    again = await client.says_one(peer.producer(6, 3, "t"))
    assert again.body.schema_version == FIRST


@pytest.mark.parametrize(
    "schema",
    [
        avro(MORE),
        avro(b"{"),
        avro(b'["null", "int"]'),
        avro(b"", pb.Schema.STRING),
        avro(ONE, pb.Schema.JSON),
        avro(b"", pb.Schema.AUTO_CONSUME),
        avro(b"", pb.Schema.EXTERNAL),
        avro(b"[" * 900),
        avro(b'{"a": "' + b"a" * 1_000_000 + b'"}'),
    ],
)
async def test_refused_producers(stage: Stage, schema: pb.Schema) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    received = await produces(client, 2, schema)
    assert (received.kind, received.body.error) == ("ERROR", pb.IncompatibleSchema)
    assert received.body.message
    assert (await asks(client)).schema.schema_data == ONE
    assert kinds(await client.says(peer.send(1, 1))) == ["SEND_RECEIPT"]


async def test_validation_is_enforced(stage: Stage) -> None:
    await decides(stage, schema_validation_enforced=True)
    client = await stage.player()
    assert (await produces(client, 1, None)).kind == "PRODUCER_SUCCESS"
    await produces(client, 2, avro(ONE))
    for number, schema in ((3, None), (4, BYTES)):
        received = await produces(client, number, schema)
        assert received.body.error == pb.IncompatibleSchema
        assert received.body.message.startswith("Producers cannot connect or send message without")


async def test_a_topic_decides_for_itself(stage: Stage) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    name = TopicName.parse("t")
    async with stage.broker.catalog.changing(name.namespace):
        policies = stage.broker.catalog.levels.topic(schema_compatibility_strategy="FORWARD")
        await administration.set_topic_policies(stage.broker, name, policies)
    await stage.broker.apply_policies(name.namespace)
    assert (await produces(client, 2, avro(MORE))).kind == "PRODUCER_SUCCESS"


async def test_the_name_that_the_strategy_had_before(stage: Stage) -> None:
    await decides(stage, schema_auto_update_compatibility_strategy="AlwaysCompatible")
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    assert (await produces(client, 2, avro(b"", pb.Schema.STRING))).kind == "PRODUCER_SUCCESS"


async def test_clients_may_add_nothing(stage: Stage) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    await decides(stage, is_allow_auto_update_schema=False)
    assert (await produces(client, 2, avro(ONE))).body.schema_version == FIRST
    received = await produces(client, 3, avro(MORE_OR_0))
    assert (received.kind, received.body.error) == ("ERROR", pb.IncompatibleSchema)


async def test_a_topic_without_storage_has_schemas_too(stage: Stage) -> None:
    client, topic = await stage.player(), "non-persistent://public/default/n"
    assert (await consumes(client, 1, avro(ONE), topic)).kind == "SUCCESS"
    assert (await produces(client, 2, avro(MORE_OR_0), topic)).body.schema_version == SECOND
    assert (await asks(client, topic)).schema_version == SECOND
    assert (await produces(client, 3, avro(MORE), topic)).kind == "PRODUCER_SUCCESS"
    refused = await produces(client, 4, avro(b"", pb.Schema.STRING), topic)
    assert refused.body.error == pb.IncompatibleSchema


# -- consumers -----------------------------------------------------------------------------------


async def test_the_first_consumer_of_an_empty_topic_adds_its_schema(stage: Stage) -> None:
    client = await stage.player()
    assert (await consumes(client, 1, ANY)).kind == "SUCCESS"
    assert (await consumes(client, 2, avro(ONE))).kind == "SUCCESS"
    assert (await asks(client)).schema.schema_data == ONE
    assert (await consumes(client, 3, avro(MORE_OR_0))).kind == "SUCCESS"
    assert (await asks(client)).schema_version == FIRST  # a later one adds nothing


@pytest.mark.parametrize("schema", [avro(MORE), avro(b"", pb.Schema.STRING), avro(b"{")])
async def test_refused_consumers(stage: Stage, schema: pb.Schema) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    received = await consumes(client, 2, schema)
    assert (received.kind, received.body.error) == ("ERROR", pb.IncompatibleSchema)
    topic = await stage.broker.topic(TopicName.parse("t"))
    assert "s2" not in topic.subscriptions


@pytest.mark.parametrize("who", ["producer", "consumer", "message"])
async def test_a_topic_in_use_gets_no_first_schema_from_a_consumer(stage: Stage, who: str) -> None:
    client = await stage.player()
    if who == "consumer":
        await consumes(client, 1, None)
    else:
        await produces(client, 1, None)
    if who == "message":
        await client.says(peer.send(1, 1), peer.close_producer(2, 1))
    received = await consumes(client, 3, avro(ONE))
    assert received.body.error == pb.IncompatibleSchema
    assert "empty(BYTES) schema" in received.body.message
    await decides(stage, schema_compatibility_strategy="ALWAYS_COMPATIBLE")
    assert (await consumes(client, 4, avro(ONE))).kind == "SUCCESS"


async def test_consumers_without_a_schema_read_anything(stage: Stage) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    for number, schema in ((2, None), (3, BYTES), (4, ANY)):
        assert (await consumes(client, number, schema)).kind == "SUCCESS"


async def test_a_consumer_that_gives_up_while_its_schema_is_read(stage: Stage) -> None:
    """A large definition is read in a thread, and meanwhile the client closes its consumer."""
    client = await stage.player()
    large = avro(ONE[:-1] + b', "more": "' + b"x" * AT_ONCE_BYTES + b'"}')
    client.feed(peer.subscribe(1, 1, "t", "s", schema=large))
    assert kinds(await client.says(peer.close_consumer(2, 1))) == ["SUCCESS"]
    while len(client.session.requests):
        await trio.lowlevel.checkpoint()
    topic = await stage.broker.topic(TopicName.parse("t"))
    assert topic.subscriptions == {}
    assert await client.receive() == []


# -- questions -----------------------------------------------------------------------------------


async def test_schemas_by_version(stage: Stage) -> None:
    client = await stage.player()
    for number, definition in enumerate((ONE, MORE_OR_0)):
        await produces(client, number, avro(definition))
    latest = await asks(client, "t-partition-2")
    assert latest.schema_version == SECOND
    assert (latest.schema.name, latest.schema.type) == ("public/default/t", pb.Schema.AVRO)
    assert (await asks(client, version=FIRST)).schema.schema_data == ONE


async def test_no_schema_is_a_topic_that_is_not_found(stage: Stage) -> None:
    client = await stage.player()
    assert (await asks(client)).error_code == pb.TopicNotFound
    await produces(client, 1, avro(ONE))
    assert (await asks(client, version=version_bytes(7))).error_code == pb.TopicNotFound


@pytest.mark.parametrize("version", [b"", b"\0", b"\0" * 9])
async def test_versions_that_are_none(stage: Stage, version: bytes) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    assert (await asks(client, version=version)).error_code == pb.IncompatibleSchema
    with pytest.raises(IncompatibleSchema):
        version_of(version)


async def test_a_producer_with_several_schemas(stage: Stage) -> None:
    client = await stage.player()
    assert (await brings(client, avro(ONE))).error_code == pb.TopicNotFound
    await produces(client, 1, None)
    assert (await brings(client, avro(ONE))).schema_version == FIRST
    assert (await brings(client, avro(MORE_OR_0))).schema_version == SECOND
    assert (await brings(client, BYTES)).schema_version == b""
    refused = await brings(client, avro(b"", pb.Schema.STRING))
    assert refused.error_code == pb.IncompatibleSchema
    assert "exists schema type AVRO, new schema type STRING" in refused.error_message


async def test_the_author_is_for_whom_a_proxy_speaks(guarded_stage: Stage) -> None:
    await guarded_stage.permit(proxy="produce consume", ann="produce consume")
    client = guarded_stage.stranger(proxy_roles=frozenset(["proxy"]))
    said = {"auth_method_name": "token", "auth_data": b"proxy", "original_principal": "ann"}
    await client.says_one(peer.connect(**said))
    await produces(client, 1, avro(ONE), "t")
    await consumes(client, 2, avro(ONE), "u")
    await produces(client, 3, None, "v")
    await brings(client, avro(ONE), "v")
    for topic in "tuv":
        latest = await guarded_stage.broker.schemas.latest(TopicName.parse(topic))
        assert latest is not None
        assert latest[1].user == "ann", topic


# -- what goes with the topic --------------------------------------------------------------------


async def test_schemas_go_with_their_topic(stage: Stage) -> None:
    client = await stage.player()
    await produces(client, 1, avro(ONE))
    await administration.delete_topic(stage.broker, TopicName.parse("t"), force=True)
    await client.receive()
    assert (await asks(client)).error_code == pb.TopicNotFound
    assert (await produces(client, 2, avro(b"", pb.Schema.STRING))).body.schema_version == FIRST


async def test_schemas_stay_until_the_last_partition_is_gone(stage: Stage) -> None:
    client, name = await stage.player(), TopicName.parse("p")
    await administration.create_partitioned(stage.broker, name, 2)
    await produces(client, 1, avro(ONE), "p-partition-0")
    await administration.delete_topic(stage.broker, name.partition(0), force=True)
    await client.receive()
    assert (await asks(client, "p")).schema_version == FIRST
    await administration.delete_partitioned(stage.broker, name, force=True)
    await client.receive()
    assert (await asks(client, "p")).error_code == pb.TopicNotFound


async def test_numbers_of_kinds_are_those_of_core(stage: Stage) -> None:
    assert {kind: SchemaKind(kind).name for kind in pb.Schema.Type.values() if kind != 5} == {
        number: name for name, number in pb.Schema.Type.items() if number != 5
    }
    assert SchemaKind(pb.Schema.BOOL) is SchemaKind.BOOLEAN
