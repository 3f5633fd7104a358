"""Schemas of a topic as tools ask for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/schemas/public/default/t"
X = {"name": "x", "type": "int"}
PAIR = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}


def avro(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


def sent(definition: str, kind: str = "AVRO", **properties: str) -> dict[str, Any]:
    return {"type": kind, "schema": definition, "properties": properties}


ONE = sent(avro(X), owner="me")
MORE = sent(avro(X, {"name": "y", "type": "int"}))
MORE_OR_0 = sent(avro(X, {"name": "y", "type": "int", "default": 0}))


async def add(visitor: Visitor, schema: dict[str, Any], path: str = HERE) -> Any:
    response = await visitor.ask("POST", f"{path}/schema", schema)
    assert response.status_code == 200, response.text
    return response.json()


async def test_added_and_shown(visitor: Visitor) -> None:
    await visitor.fails(404, "GET", f"{HERE}/schema")
    assert await add(visitor, ONE) == {"version": {"version": 0}}
    assert await add(visitor, MORE_OR_0) == {"version": {"version": 1}}
    assert await add(visitor, ONE) == {"version": {"version": 0}}
    first = await visitor.get(f"{HERE}/schema/0")
    assert first.pop("timestamp") > 1_600_000_000_000
    properties = {"owner": "me"}
    shown = {"version": 0, "type": "AVRO", "data": ONE["schema"], "properties": properties}
    assert first == shown
    assert (await visitor.get(f"{HERE}/schema"))["version"] == 1
    versions = (await visitor.get(f"{HERE}/schemas"))["getSchemaResponses"]
    assert [each["version"] for each in versions] == [0, 1]
    assert (await visitor.get(f"{HERE}/metadata"))["info"]["version"] == 1
    await visitor.fails(404, "GET", f"{HERE}/schema/2")
    await visitor.fails(400, "GET", f"{HERE}/schema/last")


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [
        ("a%00b", True),
        ("a%0Ab", True),
        ("x" * 3000, True),
        ("%C3%A4", True),
        ("x" * 4097, False),
        ("%C3%A4" * 2049, False),
    ],
)
async def test_names_are_those_that_topics_may_have(
    visitor: Visitor, name: str, is_taken: bool
) -> None:
    """Nothing more is taken than where a topic is created, and nothing less."""
    topic = f"/admin/v2/persistent/public/default/{name}"
    schema = f"/admin/v2/schemas/public/default/{name}"
    if not is_taken:
        why = "the name of a topic may have at most 4096 bytes"
        assert await visitor.fails(412, "PUT", topic) == why
        assert await visitor.fails(412, "POST", f"{schema}/schema", ONE) == why
        return
    assert await add(visitor, ONE, schema) == {"version": {"version": 0}}
    await visitor.does("PUT", topic)
    assert (await visitor.get(f"{schema}/schema"))["data"] == ONE["schema"]


async def test_properties_are_texts(visitor: Visitor) -> None:
    """Numbers and booleans are taken for them, as by Apache's broker (4.2.4, as seen)."""
    body = {"type": "STRING", "schema": "", "properties": {"a": 1, "b": True, "c": 1.5, "d": "x"}}
    await add(visitor, body)
    shown = await visitor.get(f"{HERE}/schema")
    assert shown["properties"] == {"a": "1", "b": "true", "c": "1.5", "d": "x"}
    for wrong in ([1], {"a": 1}):
        body["properties"] = {"a": wrong}
        await visitor.fails(400, "POST", f"{HERE}/schema", body)


async def test_nothing_to_show(visitor: Visitor) -> None:
    assert await visitor.get(f"{HERE}/schemas") == {"getSchemaResponses": []}
    assert await visitor.get(f"{HERE}/metadata") is None
    missing = "/admin/v2/schemas/public/missing/t"
    await visitor.fails(404, "POST", f"{missing}/schema", ONE)


async def test_a_partition_has_those_of_its_topic(visitor: Visitor) -> None:
    await add(visitor, ONE, f"{HERE}-partition-1")
    assert (await visitor.get(f"{HERE}/schema"))["version"] == 0


async def test_pairs(visitor: Visitor) -> None:
    text = json.dumps({"key": "", "value": json.loads(avro(X))})
    await add(visitor, sent(text, "KEY_VALUE", **PAIR))
    found = await visitor.get(f"{HERE}/schema")
    assert json.loads(found["data"]) == json.loads(text)
    assert found["properties"] == PAIR


NO_SCHEMAS = [
    sent("{"),
    sent("text", "STRING"),
    sent("", "AUTO_CONSUME"),
    sent("", "AUTO_PUBLISH"),
    sent("", "AUTO"),
    *(sent(text, "KEY_VALUE", **PAIR) for text in ("", "text", "[]", "{}", '{"key": ""}')),
    sent('{"key": "", "value": {"type": "nothing"}}', "KEY_VALUE", **PAIR),
    sent('{"key": "", "value": ""}', "KEY_VALUE", **{**PAIR, "value.schema.type": "NOTHING"}),
]


@pytest.mark.parametrize("schema", NO_SCHEMAS)
async def test_what_is_no_schema(visitor: Visitor, schema: dict[str, Any]) -> None:
    """As Apache's broker of 4.2.4 answers, or it has no words for it (500)."""
    await visitor.fails(422, "POST", f"{HERE}/schema", schema)
    await visitor.fails(500, "POST", f"{HERE}/compatibility", schema)
    version = await visitor.ask("POST", f"{HERE}/version", schema)
    assert (version.status_code, version.json()) == (200, {"version": -1})
    await visitor.fails(404, "GET", f"{HERE}/schema")


@pytest.mark.parametrize(
    ("status", "schema"),
    [
        (409, MORE),
        (409, sent("", "STRING")),
        (422, sent("", "BYTES")),
        (400, sent("", "NOTHING")),
        (400, {"type": 7}),
        (400, {}),
    ],
)
async def test_refused(visitor: Visitor, status: int, schema: dict[str, Any]) -> None:
    await add(visitor, ONE)
    await visitor.fails(status, "POST", f"{HERE}/schema", schema)
    assert (await visitor.get(f"{HERE}/schema"))["version"] == 0


async def test_compared(visitor: Visitor) -> None:
    await add(visitor, ONE)
    response = await visitor.ask("POST", f"{HERE}/compatibility", MORE_OR_0)
    assert response.status_code == 202
    assert response.json() == {"compatibility": True, "schemaCompatibilityStrategy": "FULL"}
    assert "no default" in await visitor.fails(500, "POST", f"{HERE}/compatibility", MORE)
    strategy = "/admin/v2/namespaces/public/default/schemaCompatibilityStrategy"
    await visitor.does("PUT", strategy, "FORWARD")
    response = await visitor.ask("POST", f"{HERE}/compatibility", MORE)
    assert response.json()["schemaCompatibilityStrategy"] == "FORWARD"
    assert len((await visitor.get(f"{HERE}/schemas"))["getSchemaResponses"]) == 1


async def test_which_version_it_is(visitor: Visitor) -> None:
    await add(visitor, MORE_OR_0)
    await add(visitor, ONE)
    for schema, version in ((ONE, 1), (MORE, -1)):
        response = await visitor.ask("POST", f"{HERE}/version", schema)
        assert response.json() == {"version": version}


async def test_deleted(visitor: Visitor) -> None:
    nothing = await visitor.ask("DELETE", f"{HERE}/schema")
    assert nothing.json() == {"version": -1}
    await add(visitor, ONE)
    response = await visitor.ask("DELETE", f"{HERE}/schema")
    assert (response.status_code, response.json()) == (200, {"version": 1})
    await visitor.fails(404, "GET", f"{HERE}/schema")
    await visitor.fails(404, "GET", f"{HERE}/schema/0")
    assert await add(visitor, MORE) == {"version": {"version": 2}}
    forced = await visitor.ask("DELETE", f"{HERE}/schema?force=true")
    assert forced.json() == {"version": -1}
    assert await add(visitor, ONE) == {"version": {"version": 0}}


async def test_tools_may_add_what_clients_may_not(visitor: Visitor) -> None:
    switch = "/admin/v2/namespaces/public/default/isAllowAutoUpdateSchema"
    await visitor.does("POST", switch, False)
    assert await add(visitor, ONE) == {"version": {"version": 0}}


async def test_a_namespace_takes_its_schemas_with_it(visitor: Visitor) -> None:
    space = "/admin/v2/namespaces/public/other"
    await visitor.does("PUT", space)
    await add(visitor, ONE, "/admin/v2/schemas/public/other/never")
    await visitor.does("DELETE", space)
    await visitor.does("PUT", space)
    await visitor.fails(404, "GET", "/admin/v2/schemas/public/other/never/schema")
