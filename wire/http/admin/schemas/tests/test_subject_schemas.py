"""Schemas that refer to others, and what serializers send beside a schema."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from magnetar.core.security.tests.people import guarded
from magnetar.wire.http.admin.schemas.tests.test_subjects import (
    MORE_OR_0,
    ONE,
    SUBJECT,
    fails,
    registers,
    says,
)
from magnetar.wire.http.admin.schemas.tests.test_topic_schemas import HERE
from magnetar.wire.http.tests.visitor import Visitor, visiting


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


AVRO = {"schema": '["null", "R"]', "references": [reference("R", "common")]}
JSON_N = {"schemaType": "JSON", "schema": '{"type": "integer"}'}
JSON = {
    "schemaType": "JSON",
    "schema": '{"type": "array", "items": {"$ref": "n.json"}}',
    "references": [reference("n.json", "common")],
}
P = {
    "schemaType": "PROTOBUF",
    "schema": 'syntax = "proto3";\npackage p;\n\nmessage P {\n  int32 a = 1;\n}\n',
}
PROTOBUF = {
    "schemaType": "PROTOBUF",
    "schema": 'syntax = "proto3";\nimport "p.proto";\n\nmessage M {\n  .p.P p = 1;\n}\n',
    "references": [reference("p.proto", "common")],
}
EACH = pytest.mark.parametrize(
    ("needed", "schema"),
    [(ONE, AVRO), (JSON_N, JSON), (P, PROTOBUF)],
    ids=["avro", "json", "proto"],
)
COMMON = "/subjects/common"


@EACH
@pytest.mark.parametrize("subject", [SUBJECT, "/subjects/t-key"])
async def test_references(
    visitor: Visitor, needed: dict[str, Any], schema: dict[str, Any], subject: str
) -> None:
    why = await fails(visitor, 42201, "POST", f"{subject}/versions", schema)
    assert "version 1 of common, which is not there" in why
    assert await says(visitor, "GET", "/subjects") == []
    needed_id = await registers(visitor, needed, COMMON)
    schema_id = await registers(visitor, schema, subject)
    assert await registers(visitor, schema, subject) == schema_id
    assert await says(visitor, "GET", f"/schemas/ids/{schema_id}") == schema
    shown = await says(visitor, "GET", f"{subject}/versions/latest")
    assert shown.items() >= {"version": 1, "id": schema_id, **schema}.items()
    assert (await says(visitor, "POST", subject, schema))["id"] == schema_id
    assert await says(visitor, "GET", f"{COMMON}/versions/1/referencedby") == [schema_id]
    compared = f"/compatibility{subject}/versions/latest"
    assert await says(visitor, "POST", compared, schema) == {"is_compatible": True}
    for path in (COMMON, f"{COMMON}/versions/1"):
        why = await fails(visitor, 42206, "DELETE", path)
        assert f"schema {schema_id} refers to version 1" in why
    await fails(visitor, 40405, "DELETE", f"{COMMON}?permanent=true")
    assert await says(visitor, "DELETE", subject) == [1]
    assert await says(visitor, "GET", f"{COMMON}/versions/1/referencedby") == []
    hidden = await says(visitor, "GET", f"{COMMON}/versions/1/referencedby?deleted=true")
    assert hidden == [schema_id]
    await fails(visitor, 42206, "DELETE", COMMON)
    assert await says(visitor, "DELETE", f"{subject}?permanent=true") == [1]
    assert await says(visitor, "DELETE", COMMON) == [1]
    assert await says(visitor, "GET", f"/schemas/ids/{needed_id}") == needed


@EACH
async def test_other_references_are_another_schema(
    visitor: Visitor, needed: dict[str, Any], schema: dict[str, Any]
) -> None:
    await registers(visitor, needed, COMMON)
    await registers(visitor, needed, "/subjects/copy")
    first = await registers(visitor, schema)
    (said,) = schema["references"]
    other = {**schema, "references": [{**said, "subject": "copy", "version": -1}]}
    await fails(visitor, 40403, "POST", SUBJECT, other)
    second = await registers(visitor, other)
    assert first != second
    shown = await says(visitor, "GET", f"/schemas/ids/{second}")
    assert shown["references"] == [{**said, "subject": "copy", "version": 1}]


@pytest.mark.parametrize(
    "references",
    [
        [{"name": "R", "subject": "common"}],
        [reference("R", "common", 2)],
        [reference("R", "common", 0)],
        [reference("R", "common", -1), 7],
        [reference("R", "")],
        [reference("R", "none", -1)],
        [reference("Q", "t-key", -1)],
        [reference(f"R{n}", "common") for n in range(101)],
        {},
    ],
)
async def test_what_is_no_reference(visitor: Visitor, references: Any) -> None:
    await registers(visitor, ONE, COMMON)
    await registers(visitor, JSON_N, "/subjects/t-key")
    schema = {**AVRO, "references": references}
    await fails(visitor, 42201, "POST", f"{SUBJECT}/versions", schema)
    assert await says(visitor, "GET", "/subjects") == ["common", "t-key"]


async def test_a_circle_cannot_be_made(visitor: Visitor) -> None:
    """What would close it refers to a version that is not there yet."""
    circle = {"schema": ONE["schema"], "references": [reference("R", "common", 2)]}
    await registers(visitor, ONE, COMMON)
    await fails(visitor, 42201, "POST", f"{COMMON}/versions", circle)


async def test_a_file_with_imports_as_a_descriptor(visitor: Visitor) -> None:
    """Each as its file, which others put together again."""
    await registers(visitor, P, COMMON)
    first = await registers(visitor, PROTOBUF)
    pool = DescriptorPool()
    for name, path in (
        ("p.proto", f"{COMMON}/versions/1"),
        ("m.proto", f"/schemas/ids/{first}"),
    ):
        answer = await says(visitor, "GET", f"{path}?format=serialized")
        proto = FileDescriptorProto.FromString(base64.b64decode(answer["schema"]))
        proto.name = name
        pool.AddSerializedFile(proto.SerializeToString())
    assert proto.message_type[0].field[0].type_name == ".p.P"
    sent = base64.b64encode(proto.SerializeToString()).decode()
    assert await registers(visitor, {**PROTOBUF, "schema": sent}) == first


async def test_a_topic_shows_a_schema_with_references_as_another_registrys(
    visitor: Visitor,
) -> None:
    """Pulsar's clients know none; what follows is compared with what it means."""
    await registers(visitor, ONE, COMMON)
    record = json.loads(ONE["schema"])
    record["name"], record["fields"][0]["type"] = "S", "R"
    await registers(visitor, {"schema": json.dumps(record), "references": AVRO["references"]})
    assert (await visitor.get(f"{HERE}/schema"))["type"] == "EXTERNAL"
    record["fields"][0]["type"] = json.loads(ONE["schema"])
    whole = {"type": "AVRO", "schema": json.dumps(record), "properties": {}}
    assert (await visitor.ask("POST", f"{HERE}/schema", whole)).status_code == 200
    record["fields"][0]["type"] = "string"
    other = {"type": "AVRO", "schema": json.dumps(record), "properties": {}}
    assert (await visitor.ask("POST", f"{HERE}/schema", other)).status_code == 409


async def test_a_topics_schema_that_is_referred_to_stays(visitor: Visitor) -> None:
    await registers(visitor, ONE)
    schema = {**AVRO, "references": [reference("R", "t-value")]}
    await registers(visitor, schema, "/subjects/t-key")
    for path in (f"{HERE}/schema", f"{HERE}/schema?force=true"):
        assert (await visitor.ask("DELETE", path)).status_code == 412
    assert await says(visitor, "GET", f"{SUBJECT}/versions") == [1]


async def test_only_what_one_may_see_is_referred_to() -> None:
    async with visiting(access=guarded(superusers=["ann"])) as visitor:
        ann, bob = ({"authorization": f"Bearer {name}"} for name in ("ann", "bob"))
        for subject in ("/subjects/secret-value", COMMON):
            answer = await visitor.ask("POST", f"{subject}/versions", ONE, headers=ann)
            assert answer.status_code == 200
        grant = "/admin/v2/persistent/public/default/t/permissions/bob"
        answer = await visitor.ask("POST", grant, ["produce"], headers=ann)
        assert answer.status_code < 300
        schema = {**AVRO, "references": [reference("R", "secret-value")]}
        answer = await visitor.ask("POST", f"{SUBJECT}/versions", schema, headers=bob)
        assert answer.status_code == 403
        own = await visitor.ask("POST", f"{SUBJECT}/versions", MORE_OR_0, headers=bob)
        assert own.status_code == 200
        schema = {**AVRO, "references": [reference("R", "t-value")]}
        answer = await visitor.ask("POST", f"{SUBJECT}/versions", schema, headers=bob)
        assert answer.status_code in (200, 409)


@pytest.mark.parametrize(
    "more",
    [
        {"references": None, "metadata": None, "ruleSet": None, "schemaType": None, "id": None},
        {"ruleSet": {"domainRules": [], "migrationRules": None}, "id": -1},
        {"metadata": {"tags": {}, "properties": {}, "sensitive": []}},
        {"references": [], "version": 0, "schemaTagsToAdd": None},
    ],
)
async def test_what_serializers_send_by_default(visitor: Visitor, more: dict[str, Any]) -> None:
    first = await registers(visitor, {**ONE, **more})
    assert await says(visitor, "GET", f"/schemas/ids/{first}") == ONE
