"""The kinds of schemas that serializers beside Kafka have, and clients of topics have not. Pure.

`verdicts` loads this when there is a schema of one of them.
"""

from __future__ import annotations

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.definitions import json_of
from magnetar.core.schema.json_schema import compatibility as json_compatibility
from magnetar.core.schema.json_schema import reader as json_reader
from magnetar.core.schema.json_schema.model import written as json_written
from magnetar.core.schema.protobuf import compatibility as protobuf_compatibility
from magnetar.core.schema.protobuf import reader as protobuf_reader
from magnetar.core.schema.protobuf.writer import written as protobuf_written
from magnetar.core.schema.schema import SchemaKind, TopicSchema


def one_form(schema: TopicSchema) -> bytes:
    """A form that two definitions share if they are one schema; raises for one that is none of its
    kind.
    """
    if schema.kind is SchemaKind.JSON_SCHEMA:
        document = json_of(schema.definition)
        json_reader.read_document(document, schema.imports)
        return json_written(document)
    found = protobuf_reader.read(schema.definition, schema.imports)
    if found.is_empty:
        raise IncompatibleSchema("the schema has no types")
    return protobuf_written(found).encode()


def incompatibility(old: TopicSchema, new: TopicSchema) -> str:
    """Why the new schema may not be that of what the old one was of, or nothing. Of one kind."""
    both = old, new
    if new.kind is SchemaKind.JSON_SCHEMA:
        documents = (json_reader.read(each.definition, each.imports) for each in both)
        return json_compatibility.incompatibility(*documents)
    files = (protobuf_reader.read(each.definition, each.imports) for each in both)
    return protobuf_compatibility.incompatibility(*files)
