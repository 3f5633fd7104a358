"""A registry as serializers beside Kafka ask it."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from msgspec.structs import replace

from magnetar.core.kernel.names import TopicName
from magnetar.core.security.tests.people import guarded
from magnetar.wire.http.admin.schemas import subjects
from magnetar.wire.http.admin.schemas.tests.test_topic_schemas import HERE, X, avro
from magnetar.wire.http.admin.schemas.tests.test_topic_schemas import ONE as OF_TOPIC
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

ONE = {"schema": avro(X)}
MORE = {"schema": avro(X, {"name": "y", "type": "int"})}
MORE_OR_0 = {"schema": avro(X, {"name": "y", "type": "int", "default": 0})}
RENAMED = {"schema": avro(X).replace('"R"', '"Q"')}
SUBJECT = "/subjects/t-value"


async def says(visitor: Visitor, method: str, path: str, body: Any = None) -> Any:
    """The answer, without GUIDs, whose numbers nobody foresees."""
    return without_guids(await answer(visitor, method, path, body))


async def answer(visitor: Visitor, method: str, path: str, body: Any = None) -> Any:
    response = await visitor.ask(method, path, body)
    assert response.status_code == 200, (path, response.text)
    return response.json()


def without_guids(found: Any) -> Any:
    if isinstance(found, list):
        return list(map(without_guids, found))
    if isinstance(found, dict):
        return {name: value for name, value in found.items() if name != "guid"}
    return found


async def fails(visitor: Visitor, code: int, method: str, path: str, body: Any = None) -> str:
    """An error with the registry's code."""
    response = await visitor.ask(method, path, body)
    answer = response.json()
    assert (response.status_code, answer["error_code"]) == (int(str(code)[:3]), code), answer
    return str(answer["message"])


async def registers(visitor: Visitor, schema: dict[str, Any], subject: str = SUBJECT) -> int:
    return int((await says(visitor, "POST", f"{subject}/versions", schema))["id"])


@pytest.mark.parametrize("subject", [SUBJECT, "/subjects/t-key", "/subjects/org.example%2FOrder"])
async def test_registered_and_found(visitor: Visitor, subject: str) -> None:
    assert await says(visitor, "GET", "/subjects") == []
    await fails(visitor, 40401, "GET", f"{subject}/versions")
    first = await registers(visitor, ONE, subject)
    second = await registers(visitor, MORE_OR_0, subject)
    assert first != second
    assert await registers(visitor, ONE, subject) == first
    assert await says(visitor, "GET", f"{subject}/versions") == [1, 2]
    latest = await says(visitor, "GET", f"{subject}/versions/latest")
    (name,) = await says(visitor, "GET", "/subjects")
    assert latest == {"subject": name, "version": 2, "id": second, **MORE_OR_0}
    assert (await says(visitor, "GET", f"{subject}/versions/1"))["id"] == first
    assert await says(visitor, "GET", f"{subject}/versions/1/schema") == json.loads(ONE["schema"])
    assert (await says(visitor, "POST", subject, ONE))["version"] == 1
    assert await says(visitor, "GET", f"/schemas/ids/{first}") == ONE
    assert await says(visitor, "GET", f"/schemas/ids/{first}/schema") == json.loads(ONE["schema"])
    in_versions = await says(visitor, "GET", f"/schemas/ids/{first}/versions")
    assert in_versions == [{"subject": name, "version": 1}]
    assert await says(visitor, "GET", f"/schemas/ids/{first}/subjects") == [name]


async def test_json_schema(visitor: Visitor) -> None:
    """Pulsar's tools and clients see that there is one, and none of their own follows it."""
    text = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "additionalProperties": False,
    }
    one = {"schemaType": "JSON", "schema": json.dumps(text)}
    text["properties"]["y"] = {"type": "string"}
    more = {"schemaType": "JSON", "schema": json.dumps(text)}
    text["properties"]["x"] = {"type": "string"}
    other = {"schemaType": "JSON", "schema": json.dumps(text)}
    first = await registers(visitor, one)
    spaced = {"schemaType": "JSON", "schema": one["schema"].replace(" ", "  ")}
    assert await registers(visitor, spaced) == first
    assert await says(visitor, "GET", f"/schemas/ids/{first}") == one
    compared = "/compatibility/subjects/t-value/versions"
    why = await says(visitor, "POST", f"{compared}/latest?verbose=true", other)
    assert (why["is_compatible"], "#/properties/x" in why["messages"][0]) == (False, True)
    assert await says(visitor, "POST", compared, more) == {"is_compatible": True}
    await registers(visitor, more)
    await fails(visitor, 409, "POST", f"{SUBJECT}/versions", other)
    latest = await says(visitor, "GET", f"{SUBJECT}/versions/latest")
    assert (latest["version"], latest["schemaType"]) == (2, "JSON")
    assert (await says(visitor, "POST", SUBJECT, one))["version"] == 1
    await fails(visitor, 409, "POST", f"{SUBJECT}/versions", ONE)
    assert (await visitor.get(f"{HERE}/schema"))["type"] == "EXTERNAL"
    answer = await visitor.ask("POST", f"{HERE}/schema", OF_TOPIC)
    assert answer.status_code == 409
    mine = {"type": "JSON_SCHEMA", "schema": one["schema"]}
    assert (await visitor.ask("POST", f"{HERE}/schema", mine)).status_code in (400, 422)


async def test_protobuf(visitor: Visitor) -> None:
    """As text, or as the descriptor that clients with compiled classes send."""
    text = 'syntax = "proto3";\nmessage M {\n  int32 a = 1;\n}\n'
    one = {"schemaType": "PROTOBUF", "schema": text}
    proto = FileDescriptorProto(name="m.proto", syntax="proto3")
    message = proto.message_type.add(name="M")
    message.field.add(name="a", number=1, type=FieldDescriptorProto.TYPE_INT32, label=1)
    first = await registers(visitor, one)
    sent = {**one, "schema": base64.b64encode(proto.SerializeToString()).decode()}
    assert await registers(visitor, sent) == first
    assert await registers(visitor, {**one, "schema": f"// the same\n{text}"}) == first
    assert await says(visitor, "GET", f"/schemas/ids/{first}") == one
    answer = await says(visitor, "GET", f"/schemas/ids/{first}?format=serialized")
    found = FileDescriptorProto.FromString(base64.b64decode(answer["schema"]))
    assert [each.name for each in found.message_type] == ["M"]
    message.field.add(name="b", number=2, type=FieldDescriptorProto.TYPE_STRING, label=1)
    more = {**one, "schema": base64.b64encode(proto.SerializeToString()).decode()}
    second = await registers(visitor, more)
    shown = await says(visitor, "GET", f"{SUBJECT}/versions/2")
    assert (shown["id"], shown["schemaType"]) == (second, "PROTOBUF")
    assert "message M {\n  int32 a = 1;\n  string b = 2;\n}" in shown["schema"]
    other = {**one, "schema": text.replace("int32", "string")}
    why = await fails(visitor, 409, "POST", f"{SUBJECT}/versions", other)
    assert "field 1" in why
    assert (await visitor.get(f"{HERE}/schema"))["type"] == "EXTERNAL"


@pytest.mark.parametrize("text", ["", "message", "abc=", "A" * 8_000, 'import "o.proto";'])
async def test_what_is_no_protobuf(visitor: Visitor, text: str) -> None:
    schema = {"schemaType": "PROTOBUF", "schema": text}
    await fails(visitor, 42201, "POST", f"{SUBJECT}/versions", schema)
    assert await says(visitor, "GET", "/subjects") == []


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "text"}', '{"$ref": "other.json"}'])
async def test_what_is_no_json_schema(visitor: Visitor, text: str) -> None:
    schema = {"schemaType": "JSON", "schema": text}
    await fails(visitor, 42201, "POST", f"{SUBJECT}/versions", schema)
    assert await says(visitor, "GET", "/subjects") == []


async def test_a_topic_and_its_subject_are_one(visitor: Visitor) -> None:
    await registers(visitor, ONE)
    assert (await visitor.get(f"{HERE}/schema"))["data"] == ONE["schema"]
    assert (await says(visitor, "POST", f"{HERE}/schema", OF_TOPIC))["version"] == {"version": 0}
    more = {"type": "AVRO", **MORE_OR_0}
    await says(visitor, "POST", f"{HERE}/schema", more)
    assert (await says(visitor, "GET", f"{SUBJECT}/versions/latest"))["version"] == 2


async def test_what_is_not_avro_is_not_shown(visitor: Visitor) -> None:
    await says(visitor, "POST", f"{HERE}/schema", {"type": "STRING", "schema": ""})
    await fails(visitor, 40401, "GET", f"{SUBJECT}/versions")
    await fails(visitor, 409, "POST", f"{SUBJECT}/versions", ONE)


@pytest.mark.parametrize(
    ("code", "schema"),
    [
        (409, MORE),
        (409, RENAMED),
        (42201, {"schema": "{"}),
        (42201, {}),
        (42201, {"schema": 7}),
        (42201, {**ONE, "schemaType": "THRIFT"}),
        (42201, {**ONE, "references": [{"name": "a", "subject": "b", "version": 1}]}),
        (42201, {**ONE, "references": [{"name": "a", "subject": "b"}]}),
        (42201, {**ONE, "ruleSet": {"domainRules": [{"name": "r"}]}}),
        (42201, {**ONE, "metadata": {"properties": {"owner": "me"}}}),
        (42205, {**ONE, "id": 7}),
    ],
)
async def test_refused(visitor: Visitor, code: int, schema: dict[str, Any]) -> None:
    await registers(visitor, ONE)
    assert await fails(visitor, code, "POST", f"{SUBJECT}/versions", schema)
    assert await says(visitor, "GET", f"{SUBJECT}/versions") == [1]


@pytest.mark.parametrize("subject", [SUBJECT, "/subjects/t-key"])
async def test_clients_may_be_forbidden_to_add(visitor: Visitor, subject: str) -> None:
    first = await registers(visitor, ONE, subject)
    switch = "/admin/v2/namespaces/public/default/isAllowAutoUpdateSchema"
    await visitor.does("POST", switch, False)
    assert await registers(visitor, ONE, subject) == first
    assert "disabled" in await fails(visitor, 409, "POST", f"{subject}/versions", MORE_OR_0)
    assert await says(visitor, "GET", f"{subject}/versions") == [1]
    await visitor.does("POST", switch, True)
    assert await registers(visitor, MORE_OR_0, subject) != first


async def test_the_author_is_for_whom_a_proxy_speaks() -> None:
    options = replace(OPTIONS, proxy_roles=frozenset(["proxy"]))
    async with visiting(options, access=guarded(superusers=["ann", "proxy"])) as visitor:
        headers = {"authorization": "Bearer proxy", "x-original-principal": "ann"}
        for path, sent, topic in (
            ("/subjects/t-value/versions", ONE, "t"),
            ("/admin/v2/schemas/public/default/u/schema", OF_TOPIC, "u"),
        ):
            assert (await visitor.ask("POST", path, sent, headers=headers)).status_code == 200
            latest = await visitor.broker.schemas.latest(TopicName.parse(topic))
            assert latest is not None
            assert latest[1].user == "ann"


@pytest.mark.parametrize("subject", [SUBJECT, "/subjects/t-key"])
async def test_one_version_is_deleted(visitor: Visitor, subject: str) -> None:
    first = await registers(visitor, ONE, subject)
    await registers(visitor, MORE_OR_0, subject)
    versions = f"{subject}/versions"
    await fails(visitor, 40402, "DELETE", f"{versions}/3")
    await fails(visitor, 42202, "DELETE", f"{versions}/none")
    await fails(visitor, 40407, "DELETE", f"{versions}/1?permanent=true")
    assert await says(visitor, "DELETE", f"{versions}/1") == 1
    await fails(visitor, 40406, "DELETE", f"{versions}/1")
    await fails(visitor, 40402, "GET", f"{versions}/1")
    assert await says(visitor, "GET", versions) == [2]
    assert await says(visitor, "GET", f"{versions}?deleted=true") == [1, 2]
    assert (await says(visitor, "GET", f"{versions}/1?deleted=true"))["id"] == first
    assert await says(visitor, "GET", f"/schemas/ids/{first}") == ONE
    assert await says(visitor, "DELETE", f"{versions}/latest") == 2
    assert await says(visitor, "GET", "/subjects") == []
    (name,) = await says(visitor, "GET", "/subjects?deleted=true")
    assert name == subject.removeprefix("/subjects/")
    assert await says(visitor, "DELETE", f"{versions}/1?permanent=true") == 1
    await fails(visitor, 40403, "GET", f"/schemas/ids/{first}")
    await fails(visitor, 40402, "GET", f"{versions}/1?deleted=true")


async def test_there_is_one_mode_and_one_context(visitor: Visitor) -> None:
    for path in ("/mode", "/mode/t-value"):
        assert await says(visitor, "GET", path) == {"mode": "READWRITE"}
        assert "READWRITE" in await fails(visitor, 42205, "PUT", path, {"mode": "READONLY"})
    await fails(visitor, 42205, "DELETE", "/mode/t-value")
    assert await says(visitor, "GET", "/contexts") == ["."]
    await registers(visitor, ONE)
    assert await says(visitor, "GET", f"{SUBJECT}/versions/1/referencedby") == []
    await fails(visitor, 40402, "GET", f"{SUBJECT}/versions/2/referencedby")


async def test_compared(visitor: Visitor) -> None:
    path = "/compatibility/subjects/t-value/versions"
    await fails(visitor, 40401, "POST", path, ONE)
    await registers(visitor, ONE)
    assert await says(visitor, "POST", path, MORE_OR_0) == {"is_compatible": True}
    assert await says(visitor, "POST", f"{path}/latest", MORE) == {"is_compatible": False}
    why = await says(visitor, "POST", f"{path}/1?verbose=true", MORE)
    assert "no default" in why["messages"][0]
    await fails(visitor, 40402, "POST", f"{path}/7", ONE)
    for none in ("0", "one", "%C2%B2", "0" * 17 + "1" * 5_000):
        await fails(visitor, 42202, "POST", f"{path}/{none}", ONE)


async def test_deleted(visitor: Visitor) -> None:
    await fails(visitor, 40401, "DELETE", SUBJECT)
    await fails(visitor, 40401, "DELETE", f"{SUBJECT}?permanent=true")
    schema_id = await registers(visitor, ONE)
    assert await says(visitor, "DELETE", SUBJECT) == [1]
    assert await says(visitor, "GET", f"/schemas/ids/{schema_id}") == ONE
    await registers(visitor, MORE)
    assert await says(visitor, "GET", f"{SUBJECT}/versions") == [3]
    await fails(visitor, 40405, "DELETE", f"{SUBJECT}?permanent=true")
    assert await says(visitor, "DELETE", SUBJECT) == [3]
    await fails(visitor, 40404, "DELETE", SUBJECT)
    assert await says(visitor, "DELETE", f"{SUBJECT}?permanent=true") == [1, 3]
    await fails(visitor, 40401, "DELETE", f"{SUBJECT}?permanent=true")
    await fails(visitor, 40403, "GET", f"/schemas/ids/{schema_id}")


async def test_the_rest(visitor: Visitor) -> None:
    assert await says(visitor, "GET", "/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]
    assert await says(visitor, "GET", "/mode") == {"mode": "READWRITE"}
    assert await says(visitor, "GET", "/mode/t-value") == {"mode": "READWRITE"}
    await fails(visitor, 40403, "GET", "/schemas/ids/7")
    await registers(visitor, ONE)
    await fails(visitor, 40403, "POST", SUBJECT, MORE)
    await registers(visitor, ONE, "/subjects/other")
    assert await says(visitor, "GET", "/subjects?subjectPrefix=o") == ["other"]


async def test_some_subjects(visitor: Visitor) -> None:
    for name in "abc":
        await registers(visitor, ONE, f"/subjects/{name}")
    assert await says(visitor, "GET", "/subjects?offset=1") == ["b", "c"]
    assert await says(visitor, "GET", "/subjects?offset=1&limit=1") == ["b"]
    assert await says(visitor, "GET", "/subjects?limit=0") == []
    assert await says(visitor, "GET", "/subjects?limit=-1") == ["a", "b", "c"]
    await fails(visitor, 40001, "GET", "/subjects?offset=-1")


IN_CONTEXT = "%3A.ctx%3At-value"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", f"/subjects/{IN_CONTEXT}{rest}") for rest in ("", "/versions")),
        *(("GET", f"/subjects/{IN_CONTEXT}/versions{rest}") for rest in ("", "/1", "/1/schema")),
        *(("DELETE", f"/subjects/{IN_CONTEXT}{rest}") for rest in ("", "/versions/1")),
        ("POST", f"/compatibility/subjects/{IN_CONTEXT}/versions/latest"),
        *((method, f"/config/{IN_CONTEXT}") for method in ("GET", "DELETE")),
        ("GET", f"/mode/{IN_CONTEXT}"),
        ("GET", "/subjects?subjectPrefix=:.ctx:"),
        ("GET", "/schemas?subjectPrefix=:.ctx:t"),
        ("GET", "/schemas/ids/1?subject=:.ctx:t-value"),
        ("POST", f"/subjects/{'a' * 600}/versions"),
    ],
)
async def test_contexts_are_refused(visitor: Visitor, method: str, path: str) -> None:
    await registers(visitor, ONE)
    why = await fails(visitor, 42208, method, path, ONE if method == "POST" else None)
    assert "context" in why or "letters" in why


async def test_contexts_are_refused_to_those_who_are_asked_for_rights() -> None:
    async with visiting(access=guarded(superusers=["ann"])) as visitor:
        path, ann = f"/subjects/{IN_CONTEXT}/versions", {"authorization": "Bearer ann"}
        for method in ("GET", "POST"):
            found = await visitor.ask(method, path, ONE, headers=ann)
            assert found.json()["error_code"] == 42208


async def test_the_context_without_a_name_may_be_named(visitor: Visitor) -> None:
    schema_id = await registers(visitor, ONE, "/subjects/%3A.%3At-value")
    assert await registers(visitor, ONE) == schema_id
    for prefix in ("", ":.:", ":*:", ":.:t", ":*:t"):
        assert await says(visitor, "GET", f"/subjects?subjectPrefix={prefix}") == ["t-value"]
    assert await says(visitor, "GET", f"/schemas/ids/{schema_id}?subject=:.:t-value") == ONE


async def test_guids(visitor: Visitor) -> None:
    """Clients that write them into headers of records get them wherever they get an id."""
    made = await answer(visitor, "POST", f"{SUBJECT}/versions", ONE)
    guid, schema_id = made["guid"], made["id"]
    assert uuid.UUID(guid).variant == uuid.RFC_4122
    by_guid = await answer(visitor, "GET", f"/schemas/guids/{guid}")
    assert by_guid == {**ONE, "guid": guid}
    assert await answer(visitor, "GET", f"/schemas/ids/{schema_id}") == by_guid
    assert (await answer(visitor, "GET", f"{SUBJECT}/versions/1"))["guid"] == guid
    assert (await answer(visitor, "POST", SUBJECT, ONE))["guid"] == guid
    ids = await answer(visitor, "GET", f"/schemas/guids/{guid.upper()}/ids")
    assert ids == [{"context": ".", "id": schema_id}]
    another = (await answer(visitor, "POST", f"{SUBJECT}/versions", MORE_OR_0))["guid"]
    assert another != guid
    for unknown in (str(uuid.UUID(int=0)), str(uuid.UUID(int=uuid.UUID(guid).int + 99)), "x"):
        await fails(visitor, 40403, "GET", f"/schemas/guids/{unknown}")


async def test_a_schema_in_two_subjects_has_two_ids(visitor: Visitor) -> None:
    assert await registers(visitor, ONE, "/subjects/a") != await registers(visitor, ONE)


async def test_all_schemas(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    await registers(visitor, ONE)
    await registers(visitor, MORE_OR_0)
    await registers(visitor, ONE, "/subjects/other")

    async def listed(query: str = "") -> list[tuple[str, int]]:
        found = await says(visitor, "GET", f"/schemas{query}")
        return [(one["subject"], one["version"]) for one in found]

    every = [("t-value", 1), ("t-value", 2), ("other", 1)]
    assert await listed() == every
    assert (await says(visitor, "GET", "/schemas"))[0]["schema"] == ONE["schema"]
    assert await listed("?latestOnly=true") == every[1:]
    assert await listed("?subjectPrefix=o") == every[2:]
    assert await listed("?offset=1&limit=1") == every[1:2]
    assert await listed("?offset=3") == []
    assert await listed("?limit=0") == []
    await says(visitor, "DELETE", "/subjects/other")
    assert await listed() == every[:2]
    assert await listed("?deleted=true") == every
    await fails(visitor, 40001, "GET", "/schemas?offset=-1")
    monkeypatch.setattr(subjects, "SCHEMAS_BYTES_MAX", len(ONE["schema"]))
    assert await listed("?limit=1") == every[:1]
    await fails(visitor, 41301, "GET", "/schemas")
