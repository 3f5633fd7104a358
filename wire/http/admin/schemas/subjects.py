"""A registry for serializers beside Kafka: subjects, versions from 1, ids, and levels.

It is the same store as that of Pulsar's schemas (`core/schema/README.md`): a subject of a topic has
the topic's schemas in Avro. Levels are the strategies of topics and namespaces under their names
there; where nobody has decided, readers of a new version read the latest (BACKWARD).

Answers have the form and the codes of Confluent's registry, so that its serializers work
unmodified: those of Avro, JSON Schema and protobuf. Schemas are read and shown by
`subject_schemas.py`, levels are in `subject_levels.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from itertools import chain
from typing import Final

from starlette.responses import Response

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import IncompatibleSchema, NotAllowed, NotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.schema import records, verdicts
from magnetar.core.schema.records import Named, SchemaVersion, StoredSchema
from magnetar.core.schema.schema import TopicSchema
from magnetar.core.schema.subjects import CONTEXT, DEFAULT_CONTEXT, HOME, subject_of
from magnetar.wire.http.admin.schemas.subject_levels import (
    get_level,
    get_level_of,
    level,
    may_add,
    remove_level,
    remove_level_of,
    set_level,
    set_level_of,
)
from magnetar.wire.http.admin.schemas.subject_schemas import (
    KINDS,
    NOT_PERMITTED,
    REFERRED_TO,
    SCHEMA_MISSING,
    SUBJECT_DELETED,
    SUBJECT_NOT_DELETED,
    VERSION_DELETED,
    VERSION_MISSING,
    VERSION_NOT_DELETED,
    Answer,
    Problem,
    answering,
    checked,
    one,
    present,
    said_of,
    sent,
    shown,
    subject,
    to_see,
    versions_of,
)
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, AdminHandler, ReadsOnly, Table

SCHEMAS_MAX: Final = 1_000
"""Of one answer, as in Confluent's registry."""
SCHEMAS_BYTES_MAX: Final = 8 * 1024 * 1024
OFFSET_INVALID, TOO_LARGE = 40001, 41301
"""Codes of our own."""
EVERY_CONTEXT: Final = ":*:"
ONLY_CONTEXT: Final = "."

# -- subjects ------------------------------------------------------------------------------------


async def _seen(
    request: AdminRequest,
) -> AsyncGenerator[tuple[Named, tuple[SchemaVersion, ...]], None]:
    """The subjects that the client may ask about, with their versions."""
    schemas, prefix = request.broker.schemas, _prefix(request)
    in_topics, others = await schemas.names_in(HOME), await schemas.subjects()
    names: Iterator[Named] = (TopicName.parse(f"{HOME}/{local}") for local in in_topics)
    async for name in Cooperative(chain(names, others)):
        if not subject_of(name).startswith(prefix) or not request.allows(*to_see(name)):
            continue
        if found := await versions_of(request, name, deleted=request.flag("deleted")):
            yield name, found


def _prefix(request: AdminRequest) -> str:
    """What subjects begin with; of every context, or of the one that there is."""
    prefix = request.text("subjectPrefix").removeprefix(EVERY_CONTEXT).removeprefix(DEFAULT_CONTEXT)
    if prefix.startswith(CONTEXT):
        checked(prefix)
    return prefix


def _part(request: AdminRequest, limit_max: int | None) -> slice:
    """The part of a list that is asked for."""
    first, limit = request.number("offset", 0), request.number("limit", -1)
    if first < 0:
        raise Problem(OFFSET_INVALID, "offset is 0 or more")
    limits = [each for each in (limit if limit >= 0 else None, limit_max) if each is not None]
    return slice(first, first + min(limits) if limits else None)


async def list_subjects(request: AdminRequest) -> list[str]:
    part = _part(request, None)
    async with aclosing(_seen(request)) as seen:
        return [subject_of(name) async for name, _ in seen][part]


async def list_schemas(request: AdminRequest) -> list[Answer]:
    """The versions of all subjects, some at a time."""
    part = _part(request, SCHEMAS_MAX)
    first, end = part.start, part.stop
    answers: list[Answer] = []
    count = size = 0
    async with aclosing(_seen(request)) as seen:
        async for name, found in seen:
            for each in found[-1:] if request.flag("latestOnly") else found:
                if first <= count < end:
                    answers.append(await shown(request, name, each))
                    size += len(answers[-1]["schema"])
                    if size > SCHEMAS_BYTES_MAX:
                        text = f"more than {SCHEMAS_BYTES_MAX} bytes: ask for fewer (limit)"
                        raise Problem(TOO_LARGE, text)
                count += 1
            if count >= end:
                break
    return answers


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
    return {"id": found.id, "guid": await schemas.guids.of(found.id)}


async def delete(request: AdminRequest) -> list[int]:
    """Hide all versions; `permanent` deletes them if all are hidden. Their ids stay known until
    then.
    """
    name, schemas = subject(request), request.broker.schemas
    if request.flag("permanent"):
        found = [each.version + 1 for each in await present(request, deleted=True)]
        if (await schemas.versions(name)).versions:
            raise Problem(SUBJECT_NOT_DELETED, f"subject {subject_of(name)} is to be deleted first")
        with refusing_if_referred_to():
            await schemas.forget_unreferred(name)
        return found
    if await versions_of(request, name, deleted=True) and not await versions_of(request, name):
        raise Problem(SUBJECT_DELETED, f"subject {subject_of(name)} is deleted already")
    found = [each.version + 1 for each in await present(request)]
    with refusing_if_referred_to():
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
    with refusing_if_referred_to():
        changed = await change(name, found.version)
    if not changed:
        raise Problem(VERSION_MISSING, f"version {found.version + 1} has just been deleted")
    return found.version + 1


@contextmanager
def refusing_if_referred_to() -> Iterator[None]:
    """Deletes nothing that another schema needs."""
    try:
        yield
    except NotAllowed as error:
        raise Problem(REFERRED_TO, f"it is still needed: {error}") from error


async def referenced_by(request: AdminRequest) -> list[int]:
    """The ids of schemas that refer to a version."""
    deleted = request.flag("deleted")
    found = await one(request, deleted=deleted)
    schemas = request.broker.schemas
    return await schemas.referrers(subject(request), found.version, hidden=deleted)


# -- ids and GUIDs -------------------------------------------------------------------------------


async def _id_of(request: AdminRequest) -> int:
    """The id of the schema that the path names, by that or by its GUID."""
    if "id" in request.request.path_params:
        return request.path_number("id")
    guid = request.part("guid")
    schema_id = await request.broker.schemas.guids.id_of(guid)
    if schema_id is None:
        raise Problem(SCHEMA_MISSING, f"Schema {guid[:40]} not found")
    return schema_id


async def _stored(request: AdminRequest, schema_id: int) -> StoredSchema:
    if asked := request.text("subject"):  # ids are of no subject here, but nor of a context
        checked(asked)
    try:
        stored = await request.broker.schemas.by_id(schema_id)
    except NotFound as error:
        raise Problem(SCHEMA_MISSING, f"Schema {schema_id} not found") from error
    request.check(*to_see(records.owner_of(stored.path)))
    return stored


async def get_id(request: AdminRequest) -> Answer:
    schema_id = await _id_of(request)
    said = await said_of(request, await _stored(request, schema_id))
    return {**said, "guid": await request.broker.schemas.guids.of(schema_id)}


async def get_id_text(request: AdminRequest) -> Response:
    stored = await _stored(request, await _id_of(request))
    return Response(stored.schema.definition, media_type=JSON)


async def ids_of_guid(request: AdminRequest) -> list[Answer]:
    schema_id = await _id_of(request)
    await _stored(request, schema_id)
    return [{"context": ONLY_CONTEXT, "id": schema_id}]


async def versions_of_id(request: AdminRequest) -> list[Answer]:
    schema_id = await _id_of(request)
    name = records.owner_of((await _stored(request, schema_id)).path)
    return [
        {"subject": subject_of(name), "version": each.version + 1}
        for each in await versions_of(request, name)
        if each.id == schema_id
    ]


async def subjects_of_id(request: AdminRequest) -> list[str]:
    return [str(each["subject"]) for each in await versions_of_id(request)]


async def types(_ask: AdminRequest) -> list[str]:
    return list(KINDS)


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


async def mode_of(request: AdminRequest) -> Answer:
    subject(request)
    return await mode(request)


async def set_mode(_ask: AdminRequest) -> Answer:
    raise Problem(NOT_PERMITTED, "there is one mode here, READWRITE; it cannot be changed")


async def contexts(_ask: AdminRequest) -> list[str]:
    """There is one, without a name."""
    return [ONLY_CONTEXT]


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
        ("GET", "", list_schemas, Needs.IDENTITY),
        ("GET", "/ids/{id}", get_id, Needs.IDENTITY),
        ("GET", "/ids/{id}/schema", get_id_text, Needs.IDENTITY),
        ("GET", "/ids/{id}/versions", versions_of_id, Needs.IDENTITY),
        ("GET", "/ids/{id}/subjects", subjects_of_id, Needs.IDENTITY),
        ("GET", "/guids/{guid}", get_id, Needs.IDENTITY),
        ("GET", "/guids/{guid}/ids", ids_of_guid, Needs.IDENTITY),
        ("GET", "/types", types, Needs.IDENTITY),
    ),
    "/compatibility/subjects": _table(
        ("POST", VERSION, ReadsOnly(compare), Needs.SUBJECT),
        ("POST", f"{HERE}/versions", ReadsOnly(compare_all), Needs.SUBJECT),
    ),
    "/config": _table(
        ("GET", "", get_level, Needs.IDENTITY),
        ("PUT", "", set_level, Needs.SUPERUSER),
        ("DELETE", "", remove_level, Needs.SUPERUSER),
        ("GET", HERE, get_level_of, Needs.SUBJECT),
        ("PUT", HERE, set_level_of, Needs.SUPERUSER),
        ("DELETE", HERE, remove_level_of, Needs.SUPERUSER),
    ),
    "/mode": _table(
        ("GET", "", mode, Needs.IDENTITY),
        ("PUT", "", set_mode, Needs.SUPERUSER),
        ("GET", HERE, mode_of, Needs.IDENTITY),
        ("PUT", HERE, set_mode, Needs.SUPERUSER),
        ("DELETE", HERE, set_mode, Needs.SUPERUSER),
    ),
    "/contexts": _table(("GET", "", contexts, Needs.IDENTITY)),
}
"""By mount. There is one mode, in which everything may be read and registered."""
