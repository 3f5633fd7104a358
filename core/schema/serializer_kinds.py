"""The kinds of schemas that serializers beside Kafka have, and clients of topics have not. Pure.

`verdicts` loads this when there is a schema of one of them.
"""

from __future__ import annotations

import msgspec

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.json_schema import compatibility as json_compatibility
from magnetar.core.schema.json_schema import reader as json_reader
from magnetar.core.schema.json_schema.model import written as json_written
from magnetar.core.schema.protobuf import compatibility as protobuf_compatibility
from magnetar.core.schema.protobuf import reader as protobuf_reader
from magnetar.core.schema.protobuf.writer import written as protobuf_written
from magnetar.core.schema.schema import SchemaKind, TopicSchema


def check_valid(schema: TopicSchema) -> None:
    """Raise unless the definition is one of its kind."""
    if schema.kind is SchemaKind.JSON_SCHEMA:
        json_reader.read(schema.definition)
    elif not protobuf_reader.read(schema.definition).proto.message_type:
        raise IncompatibleSchema("the schema has no message")


def one_form(schema: TopicSchema) -> bytes:
    """A form that two valid definitions share if they are one schema."""
    if schema.kind is SchemaKind.JSON_SCHEMA:
        return json_written(msgspec.json.decode(schema.definition))
    return protobuf_written(protobuf_reader.read(schema.definition)).encode()


def incompatibility(old: TopicSchema, new: TopicSchema) -> str:
    """Why the new schema may not be that of what the old one was of, or nothing. Of one kind."""
    if new.kind is SchemaKind.JSON_SCHEMA:
        documents = json_reader.read(old.definition), json_reader.read(new.definition)
        return json_compatibility.incompatibility(*documents)
    files = protobuf_reader.read(old.definition), protobuf_reader.read(new.definition)
    return protobuf_compatibility.incompatibility(*files)
