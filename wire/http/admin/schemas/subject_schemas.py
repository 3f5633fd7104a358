"""Schemas of subjects, as serializers send and read them; errors in their registry's form."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.responses import Response

from magnetar.core.kernel.errors import IncompatibleSchema, Invalid
from magnetar.core.kernel.names import TopicName
from magnetar.core.schema.records import Named, SchemaVersion, StoredSchema
from magnetar.core.schema.schema import SchemaKind, SchemaReference, TopicSchema
from magnetar.core.schema.subjects import HOME, named, subject_of
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.routes import JSON, AdminHandler, ReadsOnly

Answer = dict[str, Any]
AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"
KINDS: Final = {
    AVRO: SchemaKind.AVRO,
    "JSON": SchemaKind.JSON_SCHEMA,
    PROTOBUF: SchemaKind.PROTOBUF_TEXT,
}
"""The languages of schemas, by their names there."""
NAMES: Final = {kind: name for name, kind in KINDS.items()}
PREFIXES: Final = tuple(f"{each.name}-" for each in KINDS.values())
"""Of identities."""
SUBJECT_MISSING, VERSION_MISSING, SCHEMA_MISSING, LEVEL_MISSING = 40401, 40402, 40403, 40408
SUBJECT_DELETED, SUBJECT_NOT_DELETED, VERSION_DELETED, VERSION_NOT_DELETED = range(40404, 40408)
SCHEMA_INVALID, VERSION_INVALID, LEVEL_INVALID, NOT_PERMITTED = 42201, 42202, 42203, 42205
REFERRED_TO, SUBJECT_INVALID = 42206, 42208
BASE64: Final = re.compile("[A-Za-z0-9+/\\s]+=*\\s*")
DESCRIPTOR_LETTERS_MAX: Final = 1024 * 1024
LATEST: Final = -1
WHOLE: Final = re.compile("[0-9]{1,18}")


class Problem(Exception):
    """An answer with one of the registry's codes."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        """Its first three digits are the status."""


class SentReference(Struct, frozen=True):
    """What another schema is called, and which one it is; version -1 is the latest."""

    name: str
    subject: str
    version: int


class SentSubjectSchema(Struct, frozen=True, rename="camel"):
    """A schema as serializers send it, some with nulls."""

    schema: str = ""
    schema_type: str | None = None
    references: list[SentReference] | None = None
    metadata: Any = None
    rule_set: Any = None
    id: int | None = None


def answering(handler: AdminHandler) -> AdminHandler:
    """A handler whose errors have the registry's form; it reads if that does."""

    async def answer(request: AdminRequest) -> object:
        try:
            return await handler(request)
        except Problem as error:
            return _problem(error.code, str(error))
        except IncompatibleSchema as error:
            return _problem(409, str(error))
        except Invalid as error:
            return _problem(SCHEMA_INVALID, str(error))

    return ReadsOnly(answer) if isinstance(handler, ReadsOnly) else answer


def _problem(code: int, text: str) -> Response:
    body = msgspec.json.encode({"error_code": code, "message": text})
    return Response(body, int(str(code)[:3]), media_type=JSON)


# -- what is asked for ---------------------------------------------------------------------------


def subject(request: AdminRequest) -> Named:
    return checked(request.part("subject"))


def checked(text: str) -> Named:
    """What has the schemas of a subject that a request names."""
    try:
        return named(text)
    except Invalid as error:
        raise Problem(SUBJECT_INVALID, str(error)) from error


async def sent(request: AdminRequest) -> TopicSchema:
    """The schema in the body, which is valid."""
    body = await request.json(SentSubjectSchema)
    name = body.schema_type or AVRO
    kind = KINDS.get(name)
    if kind is None:
        raise Problem(SCHEMA_INVALID, f"schemas of type {name[:40]} are not kept here")
    for what, value in (("rules", body.rule_set), ("metadata", body.metadata)):
        if says_something(value):
            raise Problem(SCHEMA_INVALID, f"{what} of schemas are not kept here")
    if not body.schema:
        raise Problem(SCHEMA_INVALID, "the schema is empty")
    if body.id is not None and body.id > 0:
        raise Problem(NOT_PERMITTED, "ids are given here; schemas cannot bring their own")
    try:
        definition = body.schema.encode(errors="surrogatepass")
        sent_references = await references_of(request, body.references or [])
        schema = TopicSchema(kind, definition, references=sent_references)
        if name == PROTOBUF and BASE64.fullmatch(body.schema):
            schema = await in_words(request, schema)
        await request.broker.schemas.check_valid(schema)
    except IncompatibleSchema as error:
        raise Problem(SCHEMA_INVALID, f"Invalid schema: {error}") from error
    return schema


def says_something(value: object) -> bool:
    """Whether rules or metadata are asked for: serializers send empty ones by default."""
    if isinstance(value, dict):
        return any(map(says_something, value.values()))
    return bool(value)


async def references_of(
    request: AdminRequest, said: Iterable[SentReference]
) -> tuple[SchemaReference, ...]:
    """The references of a schema, to subjects that its author may ask about."""
    found = []
    for each in said:
        name, version = named(each.subject), each.version
        request.check(*to_see(name))
        if version == LATEST:
            known = await versions_of(request, name)
            version = known[-1].version + 1 if known else 0
        found.append(SchemaReference(each.name, each.subject, version))
    return tuple(found)


async def in_words(request: AdminRequest, schema: TopicSchema) -> TopicSchema:
    """A schema in protobuf's language: clients with compiled classes send a descriptor, in base64,
    and others are to read it.
    """
    if len(schema.definition) > DESCRIPTOR_LETTERS_MAX:
        raise IncompatibleSchema(f"a descriptor has at most {DESCRIPTOR_LETTERS_MAX} letters")
    schemas = request.broker.schemas
    whole = await schemas.resolved(schema)
    text = await schemas.judged(whole.read_size, _described, whole)
    return msgspec.structs.replace(schema, definition=text.encode())


def _described(schema: TopicSchema) -> str:
    from magnetar.core.schema.protobuf.reader import read_descriptor
    from magnetar.core.schema.protobuf.writer import written

    try:
        data = base64.b64decode(schema.definition, validate=True)
    except ValueError as error:
        raise IncompatibleSchema("the schema is neither text nor base64") from error
    return written(read_descriptor(data, schema.imports))


async def versions_of(
    request: AdminRequest, name: Named, *, deleted: bool = False
) -> tuple[SchemaVersion, ...]:
    """The versions of a subject: those that serializers know, with those that are hidden if they
    are wanted.
    """
    known = await request.broker.schemas.versions(name)
    found: Iterable[SchemaVersion] = known.versions
    if deleted and known.hidden:
        found = sorted((*known.hidden_versions, *known.versions), key=lambda one: one.version)
    return tuple(each for each in found if each.identity.startswith(PREFIXES))


async def present(request: AdminRequest, *, deleted: bool = False) -> tuple[SchemaVersion, ...]:
    """The versions of the subject, which has some."""
    found = await versions_of(request, subject(request), deleted=deleted)
    if not found:
        raise Problem(SUBJECT_MISSING, f"Subject '{request.part('subject')}' not found.")
    return found


async def one(request: AdminRequest, *, deleted: bool = False) -> SchemaVersion:
    """The version that the path names."""
    versions, text = await present(request, deleted=deleted), request.part("version")
    if text in ("latest", "-1"):
        return versions[-1]
    number = int(text) if WHOLE.fullmatch(text) else 0
    if not 0 < number < 1 << 31:
        raise Problem(VERSION_INVALID, f"'{text[:40]}' is no version: 1 to 2^31-1, or latest")
    for each in versions:
        if each.version + 1 == number:
            return each
    raise Problem(VERSION_MISSING, f"Version {text} not found.")


async def shown(request: AdminRequest, name: Named, version: SchemaVersion) -> Answer:
    """A version as serializers read it."""
    stored = await request.broker.schemas.by_id(version.id)
    return {
        "subject": subject_of(name),
        "version": version.version + 1,
        "id": version.id,
        "guid": await request.broker.schemas.guids.of(version.id),
        **await said_of(request, stored),
    }


async def said_of(request: AdminRequest, stored: StoredSchema) -> Answer:
    """A schema, and its language, which is Avro if it is not named."""
    schema, schemas = stored.schema, request.broker.schemas
    name = NAMES.get(schema.kind, AVRO)
    said: Answer = {} if name == AVRO else {"schemaType": name}
    if schema.references:
        said["references"] = [msgspec.structs.asdict(each) for each in schema.references]
    if name == PROTOBUF and request.text("format") == "serialized":
        whole = await schemas.resolved(schema)
        return {**said, "schema": await schemas.judged(whole.read_size, _descriptor_of, whole)}
    return {**said, "schema": text_of(stored)}


def _descriptor_of(schema: TopicSchema) -> str:
    """A file as a descriptor, whose names of types are whole."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from magnetar.core.schema.protobuf.reader import read

    proto = FileDescriptorProto()
    read(schema.definition, schema.imports).file.CopyToProto(proto)
    return base64.b64encode(proto.SerializeToString()).decode()


def text_of(stored: StoredSchema) -> str:
    return stored.schema.definition.decode(errors="replace")


def to_see(name: Named) -> tuple[Action, ResourceType, str]:
    if isinstance(name, TopicName):
        return Action.DESCRIBE, ResourceType.TOPIC, name.base.full
    return Action.DESCRIBE, ResourceType.NAMESPACE, str(HOME)
