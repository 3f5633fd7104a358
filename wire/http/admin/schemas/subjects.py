"""A registry for serializers beside Kafka: subjects, versions from 1, ids, and levels.

It is the same store as that of Pulsar's schemas (`core/schema/README.md`): a subject of a topic has
the topic's schemas in Avro. Levels are the strategies of topics and namespaces under their names
there; where nobody has decided, readers of a new version read the latest (BACKWARD).

Answers have the form and the codes of Confluent's registry, so that its serializers work
unmodified: those of Avro, JSON Schema and protobuf.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.responses import Response

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import IncompatibleSchema, Invalid, NotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.values import SchemaStrategy, schema_strategy
from magnetar.core.schema import records, verdicts
from magnetar.core.schema.records import Named, SchemaVersion, StoredSchema, Subject
from magnetar.core.schema.schema import SchemaKind, TopicSchema
from magnetar.core.schema.subjects import HOME, named, namespace_of, subject_of
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, AdminHandler, ReadsOnly, Table

Answer = dict[str, Any]
NONE: Final = "NONE"
PROTOBUF: Final = "PROTOBUF"
KINDS: Final = {
    "AVRO": SchemaKind.AVRO,
    "JSON": SchemaKind.JSON_SCHEMA,
    PROTOBUF: SchemaKind.PROTOBUF_TEXT,
}
"""The languages of schemas, by their names there."""
NAMES: Final = {kind: name for name, kind in KINDS.items()}
PREFIXES: Final = tuple(f"{each.name}-" for each in KINDS.values())
"""Of identities."""
LEVELS: Final[Mapping[str, SchemaStrategy]] = {
    NONE: SchemaStrategy.ALWAYS_COMPATIBLE,
    **{
        each.value: each
        for each in SchemaStrategy
        if each.value.startswith(("BACKWARD", "FORWARD", "FULL"))
    },
}
SUBJECT_MISSING, VERSION_MISSING, SCHEMA_MISSING, LEVEL_MISSING = 40401, 40402, 40403, 40408
VERSION_DELETED, VERSION_NOT_DELETED = 40406, 40407
SCHEMA_INVALID, VERSION_INVALID, LEVEL_INVALID, NOT_PERMITTED = 42201, 42202, 42203, 42205
BASE64: Final = re.compile("[A-Za-z0-9+/\\s]+=*\\s*")
DESCRIPTOR_LETTERS_MAX: Final = 1024 * 1024
WHOLE: Final = re.compile("[0-9]{1,18}")
POLICY: Final = "schema_compatibility_strategy"
ADDING: Final = "is_allow_auto_update_schema"


class Problem(Exception):
    """An answer with one of the registry's codes."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        """Its first three digits are the status."""


class SentSubjectSchema(Struct, frozen=True, rename="camel"):
    """A schema as serializers send it."""

    schema: str = ""
    schema_type: str = "AVRO"
    references: list[Any] = []
    rule_set: Any = None


class SentLevel(Struct, frozen=True):
    """A level as tools send it."""

    compatibility: str = ""


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
    return named(request.part("subject"))


async def sent(request: AdminRequest) -> TopicSchema:
    """The schema in the body, which is valid."""
    body = await request.json(SentSubjectSchema)
    kind = KINDS.get(body.schema_type)
    if kind is None:
        raise Problem(SCHEMA_INVALID, f"schemas of type {body.schema_type[:40]} are not kept here")
    if body.references or body.rule_set:
        raise Problem(SCHEMA_INVALID, "references and rules of schemas are not kept here")
    try:
        text = await in_words(request, body.schema) if body.schema_type == PROTOBUF else body.schema
        schema = TopicSchema(kind, text.encode(errors="surrogatepass"))
        await request.broker.schemas.check_valid(schema)
    except IncompatibleSchema as error:
        raise Problem(SCHEMA_INVALID, f"Invalid schema: {error}") from error
    return schema


async def in_words(request: AdminRequest, text: str) -> str:
    """A schema in protobuf's language: clients with compiled classes send a descriptor, in base64,
    and others are to read it.
    """
    if not BASE64.fullmatch(text):
        return text
    if len(text) > DESCRIPTOR_LETTERS_MAX:
        raise IncompatibleSchema(f"a descriptor has at most {DESCRIPTOR_LETTERS_MAX} letters")
    return await request.broker.schemas.judged(len(text), _described, text)


def _described(text: str) -> str:
    from magnetar.core.schema.protobuf.reader import read_descriptor
    from magnetar.core.schema.protobuf.writer import written

    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise IncompatibleSchema("the schema is neither text nor base64") from error
    return written(read_descriptor(data))


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
        **await said_of(request, stored),
    }


async def said_of(request: AdminRequest, stored: StoredSchema) -> Answer:
    """A schema, and its language, which is Avro if it is not named."""
    name = NAMES.get(stored.schema.kind, "AVRO")
    named = {} if name == "AVRO" else {"schemaType": name}
    if name == PROTOBUF and request.text("format") == "serialized":
        judged = request.broker.schemas.judged
        return {**named, "schema": await judged(stored.size, _descriptor_of, stored)}
    return {**named, "schema": text_of(stored)}


def _descriptor_of(stored: StoredSchema) -> str:
    from magnetar.core.schema.protobuf.reader import read

    proto = read(stored.schema.definition).proto
    return base64.b64encode(proto.SerializeToString()).decode()


def text_of(stored: StoredSchema) -> str:
    return stored.schema.definition.decode(errors="replace")


# -- subjects ------------------------------------------------------------------------------------


async def list_subjects(request: AdminRequest) -> list[str]:
    """Those that the client may ask about."""
    schemas, prefix = request.broker.schemas, request.text("subjectPrefix")
    in_topics, others = await schemas.names_in(HOME), await schemas.subjects()
    names: Iterator[Named] = (TopicName.parse(f"{HOME}/{local}") for local in in_topics)
    found = []
    async for name in Cooperative(chain(names, others)):
        text = subject_of(name)
        seen = text.startswith(prefix) and request.allows(*_to_see(name))
        if seen and await versions_of(request, name, deleted=request.flag("deleted")):
            found.append(text)
    return found


def _to_see(name: Named) -> tuple[Action, ResourceType, str]:
    if isinstance(name, TopicName):
        return Action.DESCRIBE, ResourceType.TOPIC, name.base.full
    return Action.DESCRIBE, ResourceType.NAMESPACE, str(HOME)


async def list_versions(request: AdminRequest) -> list[int]:
    found = await present(request, deleted=request.flag("deleted"))
    return [each.version + 1 for each in found]


async def get_version(request: AdminRequest) -> Answer:
    found = await one(request, deleted=request.flag("deleted"))
    return await shown(request, subject(request), found)


async def get_text(request: AdminRequest) -> Response:
    found = await one(request, deleted=request.flag("deleted"))
    stored = await request.broker.schemas.by_id(found.id)
    return Response(stored.schema.definition, media_type=JSON)


async def look_up(request: AdminRequest) -> Answer:
    """The version of the subject that a schema is."""
    await present(request)
    found = await request.broker.schemas.find(subject(request), await sent(request))
    if found is None:
        raise Problem(SCHEMA_MISSING, "Schema not found")
    return await shown(request, subject(request), found)


async def register(request: AdminRequest) -> Answer:
    """The id of a schema, which is added to the subject if it is new."""
    name, schema = subject(request), await sent(request)
    schemas, rule = request.broker.schemas, await level(request, name)
    version = await schemas.add(
        name,
        schema,
        rule,
        user=request.principal,
        may_be_new=await may_add(request, name),
        follows=verdicts.check_follows_strictly,
    )
    found = (await schemas.versions(name)).numbered(version)
    if found is None:
        raise Problem(SCHEMA_MISSING, "the schema was deleted meanwhile")
    return {"id": found.id}


async def delete(request: AdminRequest) -> list[int]:
    """Hide all versions; `permanent` deletes what is hidden, too. Ids of hidden ones stay known."""
    name, schemas = subject(request), request.broker.schemas
    if request.flag("permanent"):
        known = await schemas.versions(name)
        if not known.count:
            raise Problem(SUBJECT_MISSING, f"Subject '{request.part('subject')}' not found.")
        await schemas.forget(name)
        return list(range(1, known.next_version + 1))
    found = [each.version + 1 for each in await present(request)]
    await schemas.hide(name)
    return found


async def delete_version(request: AdminRequest) -> int:
    """Hide one version; `permanent` deletes one that is hidden already. Its number."""
    name, schemas, permanent = subject(request), request.broker.schemas, request.flag("permanent")
    found = await one(request, deleted=True)
    shown_ones = await versions_of(request, name)
    if permanent and found in shown_ones:
        raise Problem(VERSION_NOT_DELETED, f"version {found.version + 1} is to be deleted first")
    if not permanent and found not in shown_ones:
        raise Problem(VERSION_DELETED, f"version {found.version + 1} is deleted already")
    change = schemas.forget_one if permanent else schemas.hide_one
    if not await change(name, found.version):
        raise Problem(VERSION_MISSING, f"version {found.version + 1} has just been deleted")
    return found.version + 1


async def referenced_by(request: AdminRequest) -> list[int]:
    """The ids of schemas that refer to a version: none may."""
    await one(request)
    return []


# -- ids -----------------------------------------------------------------------------------------


async def _stored(request: AdminRequest) -> StoredSchema:
    schema_id = request.path_number("id")
    try:
        stored = await request.broker.schemas.by_id(schema_id)
    except NotFound as error:
        raise Problem(SCHEMA_MISSING, f"Schema {schema_id} not found") from error
    request.check(*_to_see(records.owner_of(stored.path)))
    return stored


async def get_id(request: AdminRequest) -> Answer:
    return await said_of(request, await _stored(request))


async def get_id_text(request: AdminRequest) -> Response:
    return Response((await _stored(request)).schema.definition, media_type=JSON)


async def versions_of_id(request: AdminRequest) -> list[Answer]:
    name = records.owner_of((await _stored(request)).path)
    schema_id = request.path_number("id")
    return [
        {"subject": subject_of(name), "version": each.version + 1}
        for each in await versions_of(request, name)
        if each.id == schema_id
    ]


async def subjects_of_id(request: AdminRequest) -> list[str]:
    return [str(each["subject"]) for each in await versions_of_id(request)]


async def types(_ask: AdminRequest) -> list[str]:
    return list(KINDS)


# -- levels --------------------------------------------------------------------------------------


async def level(request: AdminRequest, name: Named) -> SchemaStrategy:
    """What a new version of the subject must have in common with those before it."""
    return schema_strategy(await _decision(request, name, POLICY)) or SchemaStrategy.BACKWARD


async def may_add(request: AdminRequest, name: Named) -> bool:
    """Whether clients may add versions to the subject."""
    decided: bool | None = await _decision(request, name, ADDING)
    if decided is None:
        return request.broker.catalog.defaults.is_allow_auto_update_schema
    return decided


async def _decision(request: AdminRequest, name: Named, policy_name: str) -> Any:
    """What the topic or its namespace has decided; None for nothing."""
    catalog = request.broker.catalog
    own = await own_level(request, name) if policy_name == POLICY else None
    if own is not None:
        return own.value
    namespace = await catalog.policies(namespace_of(name))
    topic = await catalog.topic_policies(name) if isinstance(name, TopicName) else None
    policy = next(each for each in catalog.levels.policies if each.name == policy_name)
    return policy.decision(topic or catalog.levels.topic(), namespace, catalog.cluster)


async def own_level(request: AdminRequest, name: Named) -> SchemaStrategy | None:
    """What has been decided for the subject itself."""
    if isinstance(name, Subject):
        return schema_strategy((await request.broker.schemas.versions(name)).strategy)
    policies = await request.broker.catalog.topic_policies(name)
    return schema_strategy(policies.schema_compatibility_strategy)


def level_name(rule: SchemaStrategy) -> str:
    """Its name in such a registry, which has none for what nothing may follow."""
    return next((each for each in LEVELS if LEVELS[each] is rule), "FULL_TRANSITIVE")


async def get_level(request: AdminRequest) -> Answer:
    return {"compatibilityLevel": level_name(await level(request, named("-")))}


async def get_level_of(request: AdminRequest) -> Answer:
    name = subject(request)
    own = await own_level(request, name)
    if own is None and not request.flag("defaultToGlobal"):
        text = request.part("subject")
        raise Problem(LEVEL_MISSING, f"Subject '{text}' does not have subject-level compatibility")
    return {"compatibilityLevel": level_name(own or await level(request, name))}


async def _sent_level(request: AdminRequest) -> tuple[str, SchemaStrategy]:
    text = (await request.json(SentLevel)).compatibility
    if text not in LEVELS:
        raise Problem(LEVEL_INVALID, f"Invalid compatibility level: one of {', '.join(LEVELS)}")
    return text, LEVELS[text]


async def set_level(request: AdminRequest) -> Answer:
    """Of the default namespace: for subjects of its topics, and for those of no topic."""
    text, rule = await _sent_level(request)
    broker = request.broker
    async with broker.catalog.changing(HOME):
        policies = await broker.catalog.policies(HOME)
        changed = msgspec.structs.replace(policies, **{POLICY: rule.value})
        await broker.catalog.set_policies(HOME, changed)
    await broker.apply_policies(HOME)
    return {"compatibility": text}


async def set_level_of(request: AdminRequest) -> Answer:
    text, rule = await _sent_level(request)
    await _decide(request, rule)
    return {"compatibility": text}


async def remove_level_of(request: AdminRequest) -> Answer:
    rule = await level(request, subject(request))
    await _decide(request, None)
    return {"compatibility": level_name(rule)}


async def _decide(request: AdminRequest, rule: SchemaStrategy | None) -> None:
    name, broker = subject(request), request.broker
    if isinstance(name, Subject):
        await broker.schemas.decide(name, rule)
        return
    value = None if rule is None else rule.value
    async with broker.catalog.changing(name.namespace):
        policies = await broker.catalog.topic_policies(name)
        changed = msgspec.structs.replace(policies, **{POLICY: value})
        await broker.catalog.set_topic_policies(name, changed)
    await broker.apply_policies(name.namespace)


# -- comparing -----------------------------------------------------------------------------------


async def compare(request: AdminRequest) -> Answer:
    """Whether a schema may follow one version."""
    version, schema = await one(request), await sent(request)
    return await _compared(request, (version,), schema)


async def compare_all(request: AdminRequest) -> Answer:
    """Whether it may be the next version."""
    return await _compared(request, await present(request), await sent(request))


async def _compared(
    request: AdminRequest, versions: tuple[SchemaVersion, ...], schema: TopicSchema
) -> Answer:
    rule = await level(request, subject(request))
    follows = verdicts.check_follows_strictly
    try:
        await request.broker.schemas.check_new(versions, schema, rule, follows)
    except IncompatibleSchema as error:
        messages = {"messages": [str(error)]} if request.flag("verbose") else {}
        return {"is_compatible": False, **messages}
    return {"is_compatible": True}


async def mode(_ask: AdminRequest) -> Answer:
    return {"mode": "READWRITE"}


async def set_mode(_ask: AdminRequest) -> Answer:
    raise Problem(NOT_PERMITTED, "there is one mode here, READWRITE; it cannot be changed")


async def contexts(_ask: AdminRequest) -> list[str]:
    """There is one, without a name."""
    return ["."]


def _table(*rows: tuple[str, str, AdminHandler, Needs]) -> Table:
    return [(methods, path, answering(handler), need) for methods, path, handler, need in rows]


HERE: Final = "/{subject}"
VERSION: Final = "/{subject}/versions/{version}"
TABLES: Final = {
    "/subjects": _table(
        ("GET", "", list_subjects, Needs.IDENTITY),
        ("POST", HERE, ReadsOnly(look_up), Needs.SUBJECT),
        ("DELETE", HERE, delete, Needs.SUPERUSER),
        ("GET", f"{HERE}/versions", list_versions, Needs.SUBJECT),
        ("POST", f"{HERE}/versions", register, Needs.SUBJECT_WRITER),
        ("GET", VERSION, get_version, Needs.SUBJECT),
        ("DELETE", VERSION, delete_version, Needs.SUPERUSER),
        ("GET", f"{VERSION}/schema", get_text, Needs.SUBJECT),
        ("GET", f"{VERSION}/referencedby", referenced_by, Needs.SUBJECT),
    ),
    "/schemas": _table(
        ("GET", "/ids/{id}", get_id, Needs.IDENTITY),
        ("GET", "/ids/{id}/schema", get_id_text, Needs.IDENTITY),
        ("GET", "/ids/{id}/versions", versions_of_id, Needs.IDENTITY),
        ("GET", "/ids/{id}/subjects", subjects_of_id, Needs.IDENTITY),
        ("GET", "/types", types, Needs.IDENTITY),
    ),
    "/compatibility/subjects": _table(
        ("POST", VERSION, ReadsOnly(compare), Needs.SUBJECT),
        ("POST", f"{HERE}/versions", ReadsOnly(compare_all), Needs.SUBJECT),
    ),
    "/config": _table(
        ("GET", "", get_level, Needs.IDENTITY),
        ("PUT", "", set_level, Needs.SUPERUSER),
        ("GET", HERE, get_level_of, Needs.SUBJECT),
        ("PUT", HERE, set_level_of, Needs.SUPERUSER),
        ("DELETE", HERE, remove_level_of, Needs.SUPERUSER),
    ),
    "/mode": _table(
        ("GET", "", mode, Needs.IDENTITY),
        ("PUT", "", set_mode, Needs.SUPERUSER),
        ("GET", HERE, mode, Needs.IDENTITY),
        ("PUT", HERE, set_mode, Needs.SUPERUSER),
        ("DELETE", HERE, set_mode, Needs.SUPERUSER),
    ),
    "/contexts": _table(("GET", "", contexts, Needs.IDENTITY)),
}
"""By mount. There is one mode, in which everything may be read and registered."""
