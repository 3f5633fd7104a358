"""The stored form of schemas: a list of versions for each topic, a record for each schema. Pure.

    /magnetar/schemas/TENANT/NAMESPACE/TOPIC     the list: which versions there are, and their ids
    /magnetar/schema-subjects/NAME               the list of a subject that belongs to no topic
    /magnetar/schemas-by-id/ID                   one schema; written once, before a list names it

A list has no definitions, so it stays small, whatever ZooKeeper takes for one node (1 MB). Numbers
of versions begin at 0 and are not used again; a deletion takes one, and hides those before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote_plus, unquote_plus

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.schema.schema import NO_PROPERTIES, SchemaKind, SchemaReference, TopicSchema

LISTS: Final = "/magnetar/schemas"
SUBJECTS: Final = "/magnetar/schema-subjects"
BY_ID: Final = "/magnetar/schemas-by-id"
IDS: Final = "/magnetar/schema-ids"
"""The counter of ids: every schema of a cluster has one."""


class SchemaVersion(Struct, frozen=True):
    """A version, as a list has it."""

    version: int
    id: int
    identity: str
    """What it shares with the same schema (`verdicts.identity_of`)."""


class SchemaVersions(Struct, frozen=True):
    """The versions of a topic, in order."""

    next_version: int = 0
    versions: tuple[SchemaVersion, ...] = ()
    hidden: tuple[SchemaVersion | int, ...] = ()
    """Those that were deleted, or only their ids; their records go with the topic."""
    strategy: str = ""
    """The `SchemaStrategy` of a subject that belongs to no topic; empty if none is decided."""
    referrers: dict[int, tuple[int, ...]] = {}
    """By version: the ids of schemas that refer to it. An id is noted before its schema is in a
    list, and stays if a broker is killed in between (`registry.py`).
    """

    @property
    def latest(self) -> SchemaVersion | None:
        return self.versions[-1] if self.versions else None

    def same_as(self, identity: str) -> SchemaVersion | None:
        """The version of the same schema."""
        return next((each for each in self.versions if each.identity == identity), None)

    def numbered(self, version: int) -> SchemaVersion | None:
        return next((each for each in self.versions if each.version == version), None)

    def hidden_one(self, version: int) -> SchemaVersion | None:
        return next((each for each in self.hidden_versions if each.version == version), None)

    @property
    def count(self) -> int:
        return len(self.versions) + len(self.hidden)

    def with_one_more(self, schema_id: int, identity: str) -> SchemaVersions:
        """With a new latest version."""
        added = SchemaVersion(self.next_version, schema_id, identity)
        return replace(self, next_version=self.next_version + 1, versions=(*self.versions, added))

    def deleted(self) -> SchemaVersions:
        """Without any that is visible."""
        return replace(
            self,
            next_version=self.next_version + 1,
            versions=(),
            hidden=(*self.hidden, *self.versions),
        )

    def without(self, version: SchemaVersion) -> SchemaVersions:
        """With one that is hidden, which was visible."""
        left = tuple(each for each in self.versions if each is not version)
        return replace(self, versions=left, hidden=(*self.hidden, version))

    def cleared_of(self, version: SchemaVersion) -> SchemaVersions:
        """With one less that is hidden."""
        return replace(self, hidden=tuple(each for each in self.hidden if each is not version))

    def referred_to(self, version: int, schema_id: int) -> SchemaVersions:
        """With one more schema that refers to a version."""
        ids = self.referrers.get(version, ())
        return replace(self, referrers={**self.referrers, version: (*ids, schema_id)})

    def not_referred_to(self, schema_id: int) -> SchemaVersions:
        """Without a schema that is deleted."""
        left = {
            version: tuple(each for each in ids if each != schema_id)
            for version, ids in self.referrers.items()
        }
        return replace(self, referrers={version: ids for version, ids in left.items() if ids})

    @property
    def referrer_count(self) -> int:
        return sum(map(len, self.referrers.values()))

    @property
    def hidden_versions(self) -> tuple[SchemaVersion, ...]:
        """The hidden ones that have a number."""
        return tuple(each for each in self.hidden if isinstance(each, SchemaVersion))

    @property
    def ids(self) -> list[int]:
        """The ids of all schemas that there are records of."""
        every = (*self.hidden, *self.versions)
        return [each if isinstance(each, int) else each.id for each in every]


class StoredSchema(Struct, frozen=True):
    """A schema, and where it comes from."""

    schema: TopicSchema
    path: str
    """Of the list that it was added to."""
    user: str
    """Who has added it; empty without authentication."""
    created_ms: int

    @property
    def size(self) -> int:
        return self.schema.size


class SchemaHeader(Struct, frozen=True):
    """The first line of a schema's record; its definition follows as it is."""

    kind: str
    path: str
    created_ms: int
    user: str = ""
    properties: Mapping[str, str] = NO_PROPERTIES
    references: tuple[SchemaReference, ...] = ()


class Subject(Struct, frozen=True):
    """The name of a list that belongs to no topic."""

    name: str

    @property
    def encoded(self) -> str:
        """As one part of a path."""
        return quote_plus(self.name).replace(".", "%2E")


Named = TopicName | Subject
"""What has a list of schemas."""


def path_of(name: Named) -> str:
    """The path of a list. Partitions have that of their topic; domains do not matter."""
    if isinstance(name, Subject):
        return f"{SUBJECTS}/{name.encoded}"
    return f"{LISTS}/{name_of(name)}"


def name_of(name: Named) -> str:
    """A topic's name as Pulsar's registry has it (`TopicName.getSchemaName`); a subject's own."""
    if isinstance(name, Subject):
        return name.name
    return f"{name.namespace}/{name.base.encoded_local}"


def owner_of(path: str) -> Named:
    """What has the list at that path."""
    steps = path.split("/")
    if path.startswith(f"{SUBJECTS}/"):
        return Subject(unquote_plus(steps[-1]))
    tenant, namespace, local = steps[-3:]
    return TopicName.of_managed_ledger(f"{tenant}/{namespace}/persistent/{local}")


def path_of_id(schema_id: int) -> str:
    return f"{BY_ID}/{schema_id}"


def encode_versions(versions: SchemaVersions) -> bytes:
    return msgspec.json.encode(versions)


def decode_versions(data: bytes) -> SchemaVersions:
    try:
        return msgspec.json.decode(data, type=SchemaVersions)
    except msgspec.MsgspecError as error:
        raise Corrupted(f"a list of schemas cannot be read: {error}") from error


def encode_schema(stored: StoredSchema) -> bytes:
    schema = stored.schema
    header = SchemaHeader(
        schema.kind.name,
        stored.path,
        stored.created_ms,
        stored.user,
        schema.properties,
        schema.references,
    )
    return msgspec.json.encode(header) + b"\n" + schema.definition


def decode_schema(data: bytes) -> StoredSchema:
    line, _, definition = data.partition(b"\n")
    try:
        header = msgspec.json.decode(line, type=SchemaHeader)
        kind = SchemaKind[header.kind]
    except (msgspec.MsgspecError, KeyError) as error:
        raise Corrupted(f"a schema cannot be read: {error}") from error
    schema = TopicSchema(kind, definition, header.properties, header.references)
    return StoredSchema(schema, header.path, header.user, header.created_ms)
