"""Schemas of clients: GET_SCHEMA, GET_OR_CREATE_SCHEMA, and those in PRODUCER and SUBSCRIBE.

What may be added is the broker's matter (`core/broker/schema_admission.py`). On the wire a version
is its number in eight bytes, big-endian, and empty where there is no schema; clients send it with
each message and ask for it by these bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.broker import schema_admission
from magnetar.core.broker.attachment import attach
from magnetar.core.kernel.errors import IncompatibleSchema, TopicNotFound
from magnetar.core.schema.records import name_of
from magnetar.core.schema.schema import SchemaKind, TopicSchema
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session.lookup import topic_name

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.topic.topic import Topic
    from magnetar.wire.pulsar.session.client import PulsarClient

VERSION: Final = Layout(">q")


def topic_schema(sent: events.SchemaInfo | None) -> TopicSchema | None:
    """A schema as a client has sent it."""
    if sent is None:
        return None
    return TopicSchema(SchemaKind(sent.kind), sent.data, sent.properties)


def is_any(sent: events.SchemaInfo | None) -> bool:
    """Whether a consumer reads whatever schema the topic has."""
    return sent is not None and sent.kind == SchemaKind.AUTO_CONSUME


def version_bytes(version: int | None) -> bytes:
    return b"" if version is None else VERSION.pack(version)


def version_of(sent: bytes) -> int:
    """The version that a client asks for."""
    if len(sent) != VERSION.size:
        raise IncompatibleSchema("Empty schema version" if not sent else "not a schema version")
    version: int = VERSION.unpack(sent)[0]
    return version


class SchemaHandlers:
    """GET_SCHEMA, GET_OR_CREATE_SCHEMA."""

    __slots__ = ("_broker", "_client")

    def __init__(self, client: PulsarClient, broker: Broker) -> None:
        self._client = client
        self._broker = broker

    async def on_get_schema(self, event: events.GetSchema) -> None:
        """Answer with a version, or with the error that clients read as "it has no schema"."""
        name, schemas = topic_name(event.topic), self._broker.schemas
        asked, name = name, await self._broker.schemas_of(name)
        if event.version is None:
            found = await schemas.latest(name)
        else:
            version = version_of(event.version)
            numbered = await schemas.numbered(name, version)
            found = None if numbered is None else (version, numbered)
        if found is None:
            raise TopicNotFound(f"Topic not found or no-schema: {name.base}")
        version, stored = found
        shown = events.SchemaInfo(
            name_of(asked),
            max(stored.schema.shown_kind, SchemaKind.NONE),
            stored.schema.definition,
            stored.schema.properties,
        )
        self._client.reply_large(
            replies.schema_found(event.request_id, shown, version_bytes(version))
        )

    async def on_get_or_create_schema(self, event: events.GetOrCreateSchema) -> None:
        """Add a schema for a producer that has several."""
        add = partial(self._add, event)
        await attach(self._broker, topic_name(event.topic), add, create=False)

    async def _add(self, event: events.GetOrCreateSchema, topic: Topic) -> None:
        schema, user = topic_schema(event.schema), self._client.principal
        version = await schema_admission.admit_producer(self._broker, topic, schema, user)
        self._client.reply(replies.schema_taken(event.request_id, version_bytes(version)))


HANDLERS: Final[Mapping[type, Any]] = {
    events.GetSchema: SchemaHandlers.on_get_schema,
    events.GetOrCreateSchema: SchemaHandlers.on_get_or_create_schema,
}
