"""The schemas of a topic: get, add, compare, delete (`pulsar-admin schemas`).

Statuses and bodies are those of Apache's broker (`SchemasResource.java` of 4.2). What is asked
holds for persistent and non-persistent topics of the name, whether or not they are there; any
broker answers. Tools may add schemas where clients may not.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.kernel.errors import IncompatibleSchema, Invalid, NotAllowed
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.java_values import text
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.schema import key_value
from magnetar.core.schema.records import StoredSchema
from magnetar.core.schema.schema import (
    NO_PROPERTIES,
    OF_SERIALIZERS,
    WITHOUT,
    SchemaKind,
    TopicSchema,
)
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, ReadsOnly, Table

Answer = dict[str, Any]
NO_VERSION: Final = -1
OF_PULSAR: Final = frozenset(SchemaKind.__members__) - {each.name for each in OF_SERIALIZERS}
"""The types that its tools know."""
OF_CLIENTS: Final = ("AUTO", "AUTO_PUBLISH")
"""Types of its tools that no topic has; AUTO_CONSUME is a kind, for clients send it."""


class SentSchema(Struct, frozen=True):
    """The body of a request."""

    type: str = ""
    schema: str = ""
    properties: dict[str, Any] = {}
    """Texts; Java takes numbers and booleans for them."""


async def sent(request: AdminRequest) -> TopicSchema:
    """The schema that a tool has sent; `IncompatibleSchema` for one that cannot be read."""
    body = await request.json(SentSchema)
    if body.type in OF_CLIENTS:
        raise IncompatibleSchema(f"Schema {body.type} is a client-side schema type")
    if body.type not in OF_PULSAR:
        raise Invalid(f"{body.type[:40]!r} is no type of a schema")
    kind = SchemaKind[body.type]
    if kind is SchemaKind.KEY_VALUE:
        definition = key_value.from_json(body.schema)
    else:
        definition = body.schema.encode(errors="surrogatepass")
    properties = {name: text(value) for name, value in body.properties.items()}
    for name, value in properties.items():
        if not isinstance(value, str):
            raise Invalid(f"property {name[:40]!r} is no text")
    return TopicSchema(kind, definition, properties or NO_PROPERTIES)


def shown(version: int, stored: StoredSchema) -> Answer:
    """A version as tools read it."""
    schema = stored.schema
    if schema.kind is SchemaKind.KEY_VALUE:
        data = key_value.to_json(schema)
    else:
        data = schema.definition.decode(errors="replace")
    return {
        "version": version,
        "type": schema.shown_kind.name,
        "timestamp": stored.created_ms,
        "data": data,
        "properties": dict(schema.properties),
    }


# -- reading -------------------------------------------------------------------------------------


async def shown_name(request: AdminRequest) -> TopicName:
    """The topic whose schemas are shown: a shadow has those of its source."""
    return await request.broker.schemas_of(request.topic)


async def check_own(request: AdminRequest) -> None:
    """Raise if the schemas of a topic are another's."""
    source = await shown_name(request)
    if source != request.topic:
        raise NotAllowed(f"{request.topic} is a shadow topic: it has the schemas of {source}")


async def get(request: AdminRequest) -> Answer:
    found = await request.broker.schemas.latest(await shown_name(request))
    if found is None:
        raise HTTPException(404, "Schema not found")
    return shown(*found)


async def get_version(request: AdminRequest) -> Answer:
    version = request.path_number("version")
    found = await request.broker.schemas.numbered(await shown_name(request), version)
    if found is None:
        raise HTTPException(404, "Schema not found")
    return shown(version, found)


async def get_all(request: AdminRequest) -> Answer:
    found = await request.broker.schemas.all_of(await shown_name(request))
    return {"getSchemaResponses": [shown(*each) for each in found]}


async def metadata(request: AdminRequest) -> Answer | None:
    """Which versions there are. There is no ledger behind them: an entry's id is the schema's."""
    versions = await request.broker.schemas.versions(await shown_name(request))
    if versions.latest is None:
        return None
    index = [
        {"ledgerId": -1, "entryId": each.id, "version": each.version} for each in versions.versions
    ]
    return {"info": index[-1], "index": index}


async def version_of(request: AdminRequest) -> Answer:
    """The version that a schema is: none for what is no schema, too."""
    try:
        found = await request.broker.schemas.find(await shown_name(request), await sent(request))
    except IncompatibleSchema:
        found = None
    return {"version": NO_VERSION if found is None else found.version}


# -- comparing and changing ----------------------------------------------------------------------


async def strategy(request: AdminRequest) -> SchemaStrategy:
    """How schemas of the topic are compared."""
    policies = await request.broker.catalog.effective(request.topic)
    if request.topic.system:
        return SchemaStrategy.ALWAYS_COMPATIBLE
    return policies.schema_compatibility_strategy


async def add(request: AdminRequest) -> Answer:
    """Add a schema: 422 for a definition that is none, 409 for one that may not be added."""
    await check_own(request)
    schemas, rule = request.broker.schemas, await strategy(request)
    try:
        schema = await sent(request)
        await schemas.check_valid(schema)
    except IncompatibleSchema as error:
        raise HTTPException(422, str(error)) from error
    if schema.kind in WITHOUT:
        raise HTTPException(422, f"a schema of type {schema.kind.name} is not stored")
    user = request.principal
    version = await schemas.add(request.topic, schema, rule, user=user)
    return {"version": {"version": version}}


async def compare(request: AdminRequest) -> Response:
    """Whether a schema may be added: 202 if so, and 500 with the reason if not."""
    schemas, rule = request.broker.schemas, await strategy(request)
    try:
        schema = await sent(request)
        await schemas.check_valid(schema)
        versions = (await schemas.versions(await shown_name(request))).versions
        await schemas.check_new(versions, schema, rule)
    except IncompatibleSchema as error:
        raise HTTPException(500, str(error)) from error
    found = {"compatibility": True, "schemaCompatibilityStrategy": rule}
    return Response(msgspec.json.encode(found), 202, media_type=JSON)


async def delete(request: AdminRequest) -> Answer:
    """Hide all versions; with `force`, delete them, so that numbers begin again."""
    await check_own(request)
    if request.flag("force"):
        await request.broker.schemas.forget_unreferred(request.topic)
        return {"version": NO_VERSION}
    hidden = await request.broker.schemas.hide(request.topic)
    return {"version": NO_VERSION if hidden is None else hidden}


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("GET", f"{HERE}/schema", get, Needs.TOPIC),
    ("POST", f"{HERE}/schema", add, Needs.PRODUCER),
    ("DELETE", f"{HERE}/schema", delete, Needs.TENANT_ADMIN),
    ("GET", f"{HERE}/schema/{{version}}", get_version, Needs.TOPIC),
    ("GET", f"{HERE}/schemas", get_all, Needs.TOPIC),
    ("GET", f"{HERE}/metadata", metadata, Needs.TOPIC),
    ("POST", f"{HERE}/compatibility", ReadsOnly(compare), Needs.TENANT_ADMIN),
    ("POST", f"{HERE}/version", ReadsOnly(version_of), Needs.TOPIC),
)
