"""What references lead to, in the three languages, and how far they may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema import references, verdicts
from magnetar.core.schema.records import StoredSchema
from magnetar.core.schema.schema import SchemaKind, SchemaReference, TopicSchema

Texts = dict[str, TopicSchema]


def made(kind: SchemaKind, text: str, *needs: str) -> TopicSchema:
    """A schema that refers to subjects by the names that it uses."""
    return TopicSchema(
        kind, text.encode(), references=tuple(SchemaReference(each, each, 1) for each in needs)
    )


async def resolved(schema: TopicSchema, texts: Texts) -> TopicSchema:
    async def read(reference: SchemaReference) -> StoredSchema | None:
        found = texts.get(reference.subject)
        return None if found is None else StoredSchema(found, "", "", 0)

    return await references.resolved(schema, read)


def avro(name: str, kind: Any, *needs: str) -> TopicSchema:
    fields = [{"name": "x", "type": kind}]
    text = json.dumps({"type": "record", "name": name, "fields": fields})
    return made(SchemaKind.AVRO, text, *needs)


AVRO = avro("A", "B", "B"), {"B": avro("B", "C", "C"), "C": avro("C", "int")}
JSON = (
    made(SchemaKind.JSON_SCHEMA, '{"properties": {"x": {"$ref": "b.json"}}}', "b.json"),
    {
        "b.json": made(SchemaKind.JSON_SCHEMA, '{"items": {"$ref": "c.json#/$defs/N"}}', "c.json"),
        "c.json": made(SchemaKind.JSON_SCHEMA, '{"$defs": {"N": {"type": "integer"}}}'),
    },
)
PROTOBUF = (
    made(
        SchemaKind.PROTOBUF_TEXT,
        'syntax = "proto3"; import "b.proto"; message A { p.B b = 1; }',
        "b.proto",
    ),
    {
        "b.proto": made(
            SchemaKind.PROTOBUF_TEXT,
            'syntax = "proto3"; package p; import "c.proto"; message B { C c = 1; }',
            "c.proto",
        ),
        "c.proto": made(
            SchemaKind.PROTOBUF_TEXT, 'syntax = "proto3"; package p; enum C { Z = 0; }'
        ),
    },
)
EACH = pytest.mark.parametrize(("schema", "texts"), [AVRO, JSON, PROTOBUF])


@EACH
async def test_a_schema_is_read_with_what_it_needs(schema: TopicSchema, texts: Texts) -> None:
    with pytest.raises(IncompatibleSchema):
        verdicts.identity_of(schema)
    whole = await resolved(schema, texts)
    assert [each.name for each in whole.imports] == list(texts)[::-1], "the innermost first"
    assert verdicts.identity_of(whole)


@EACH
async def test_the_same_text_with_other_references_is_another_schema(
    schema: TopicSchema, texts: Texts
) -> None:
    whole = await resolved(schema, texts)
    (only,) = schema.references
    other = TopicSchema(
        schema.kind,
        schema.definition,
        references=(SchemaReference(only.name, only.subject, 2),),
        imports=whole.imports,
    )
    assert verdicts.identity_of(whole) != verdicts.identity_of(other)
    assert whole.digest != other.digest
    assert schema.digest == whole.digest


@EACH
async def test_what_is_not_there(schema: TopicSchema, texts: Texts) -> None:
    with pytest.raises(IncompatibleSchema, match="which is not there"):
        await resolved(schema, {})
    with pytest.raises(IncompatibleSchema, match="which is not there"):
        await resolved(schema, dict(list(texts.items())[:1]))


@EACH
async def test_another_language(schema: TopicSchema, texts: Texts) -> None:
    other = {name: TopicSchema(SchemaKind.STRING) for name in texts}
    with pytest.raises(IncompatibleSchema, match="another language"):
        await resolved(schema, other)


async def test_of_one_name_the_first_one_holds() -> None:
    texts = {"B": avro("B", "C", "C"), "C": avro("C", "int")}
    again = TopicSchema(
        SchemaKind.AVRO, b"{}", references=(*avro("A", "B", "B", "C").references,) * 2
    )
    whole = await resolved(again, texts)
    assert [each.name for each in whole.imports] == ["C", "B"]


async def test_a_circle_ends() -> None:
    texts = {"B": avro("B", "C", "C"), "C": avro("C", "B", "B")}
    whole = await resolved(AVRO[0], texts)
    assert [each.name for each in whole.imports] == ["C", "B"]
    assert verdicts.identity_of(whole), "Avro's types may be named before they are defined"


async def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = {f"T{n}": avro(f"T{n}", f"T{n + 1}", f"T{n + 1}") for n in range(30)}
    with pytest.raises(IncompatibleSchema, match="20 schemas deep"):
        await resolved(avro("A", "T0", "T0"), chain)
    many = avro("A", "int", *(f"T{n}" for n in range(references.REFERENCES_MAX + 1)))
    with pytest.raises(IncompatibleSchema, match="at most 100 references"):
        await resolved(many, {})
    monkeypatch.setattr(references, "IMPORTS_BYTES_MAX", 100)
    with pytest.raises(IncompatibleSchema, match="more than 100 bytes"):
        await resolved(*AVRO)
    monkeypatch.setattr(references, "IMPORTS_MAX", 1)
    with pytest.raises(IncompatibleSchema, match="more than 1 schemas"):
        await resolved(*AVRO)
