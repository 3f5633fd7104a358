"""The registry: the schemas of all topics, which every broker of a cluster may add to.

It has no owner. A new schema is compared with the versions that there are, its record is written
under an id of its own, and then the topic's list over the version that was compared: of two brokers
that add at a time one loses (`BadVersion`), removes its record, and begins again with the other's
schema. So a list names only records that exist, and every version was compared with those before
it.

    a crash before the list is written      a record that no list names, and nobody reads
    ... after it                            the version is there

What is read often is kept in memory: lists (`lists.py`), and schemas, which never change. A version
or an id that is not known is looked for in the store, since the client may have it from another
broker. The store's server may be behind, too: it catches up before the second look, and before this
broker tries again what another has done first. Schemas may refer to others, which are not deleted
then (`references.py`, `referrers.py`).

Limits: `size_max` bytes for a schema, those of `references.py` for what it refers to,
`VERSIONS_MAX` versions of a topic, the memory of the caches; and large definitions are compared in
one thread, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar
from urllib.parse import unquote_plus

import trio
from msgspec.structs import replace

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    BadVersion,
    Corrupted,
    IncompatibleSchema,
    NotAllowed,
    NotFound,
)
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.schema import records, references, verdicts
from magnetar.core.schema.guids import SchemaGuids
from magnetar.core.schema.limited_cache import LimitedCache
from magnetar.core.schema.lists import (
    ATTEMPTS_MAX,
    VERSION_BYTES,
    Change,
    KnownVersions,
    SchemaLists,
)
from magnetar.core.schema.records import (
    Named,
    SchemaVersion,
    SchemaVersions,
    StoredSchema,
    Subject,
)
from magnetar.core.schema.referrers import Referrers
from magnetar.core.schema.schema import PARSED, SchemaKind, SchemaReference, TopicSchema
from magnetar.core.schema.subjects import named

Result = TypeVar("Result")
Follows = Callable[..., None]
"""Raises unless a schema may follow another one: `verdicts.check_follows`, or its like."""

VERSIONS_MAX: Final = 1_000
"""Versions of a topic, with those that were deleted. A list of so many has 130 KB."""
SCHEMAS_BYTES_MAX: Final = 8 * 1024 * 1024
IDENTITIES_BYTES_MAX: Final = 1024 * 1024
AT_ONCE_BYTES: Final = 1024
"""Definitions up to this size are read and compared on the loop, which takes a millisecond or two,
and 20 ms for those that are made to take long.
"""
SIZE_MAX: Final = 256 * 1024


class SchemaRegistry:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, clock: Clock, size_max: int = SIZE_MAX) -> None:
        self._metadata = metadata
        self._clock = clock
        self._size_max = size_max
        self._lists = SchemaLists(metadata)
        self._referrers = Referrers(self._lists, self.by_id, clock)
        self.guids = SchemaGuids(metadata)
        self._schemas: LimitedCache[int, StoredSchema] = LimitedCache(SCHEMAS_BYTES_MAX)
        self._identities: LimitedCache[tuple[SchemaKind, bytes], str] = LimitedCache(
            IDENTITIES_BYTES_MAX
        )
        """Of definitions that were parsed before: a thousand producers have the same one."""
        self._thread = trio.CapacityLimiter(1)

    def open(self) -> None:
        """Follow what other brokers change. Before anything is read."""
        self._lists.open()

    # -- reading ------------------------------------------------------------------------------

    async def versions(self, name: Named) -> SchemaVersions:
        """The versions of a topic; none for one without schemas, or that does not exist."""
        return (await self._lists.known(records.path_of(name))).versions

    async def latest(self, name: Named) -> tuple[int, StoredSchema] | None:
        """The latest version and its schema."""
        latest = (await self.versions(name)).latest
        return None if latest is None else (latest.version, await self.by_id(latest.id))

    async def numbered(
        self, name: Named, version: int, *, hidden: bool = False
    ) -> StoredSchema | None:
        """One version, which another broker may have added a moment ago."""
        path = records.path_of(name)
        known = await self._lists.known(path)
        if version >= known.versions.next_version:
            await self._lists.catch_up(path)
            known = await self._lists.known(path)
        found = known.versions.numbered(version)
        if found is None and hidden:
            found = known.versions.hidden_one(version)
        return None if found is None else await self.by_id(found.id)

    async def all_of(self, name: Named) -> list[tuple[int, StoredSchema]]:
        """All versions of a topic, as far as memory for one answer goes."""
        found, left = [], SCHEMAS_BYTES_MAX
        for each in (await self.versions(name)).versions:
            stored = await self.by_id(each.id)
            left -= stored.size
            if left < 0:
                raise NotAllowed("the topic has too many schemas for one answer")
            found.append((each.version, stored))
        return found

    async def subjects(self) -> list[Subject]:
        """Those that belong to no topic."""
        names = await self._metadata.children(records.SUBJECTS)
        return [Subject(unquote_plus(name)) for name in names]

    async def names_in(self, namespace: NamespaceName) -> list[str]:
        """The local names of topics of a namespace that have, or had, schemas."""
        names = await self._metadata.children(f"{records.LISTS}/{namespace}")
        return [unquote_plus(name) for name in names]

    async def by_id(self, schema_id: int) -> StoredSchema:
        """The schema with that id."""
        found = self._schemas.get(schema_id)
        if found is None:
            path = records.path_of_id(schema_id)
            stored = await self._metadata.get(path)
            if stored is None:  # another broker may have added it a moment ago
                await self._metadata.sync()
                stored = await self._metadata.get(path)
            if stored is None:
                raise NotFound(f"there is no schema {schema_id}")
            found = records.decode_schema(stored.value)
            self._schemas.keep(schema_id, found, found.size + VERSION_BYTES)
        return found

    async def referrers(self, name: Named, number: int, *, hidden: bool = False) -> list[int]:
        """The ids of schemas that refer to a version; with `hidden`, of those that are hidden,
        too.
        """
        return await self._referrers.of(await self.versions(name), number, hidden=hidden)

    async def find(self, name: Named, schema: TopicSchema) -> SchemaVersion | None:
        """The version of a topic that is the same schema."""
        identity = await self._identity_of(schema)
        return (await self.versions(name)).same_as(identity)

    # -- judging ------------------------------------------------------------------------------

    async def check_valid(self, schema: TopicSchema) -> None:
        """Raise unless the definition is one of its kind, within the limit."""
        await self._identity_of(schema)

    async def _identity_of(self, schema: TopicSchema) -> str:
        """Check a schema of a client, and tell it from others."""
        if schema.size > self._size_max:
            raise IncompatibleSchema(
                f"the schema has {schema.size} bytes, and may have {self._size_max}"
            )
        if schema.kind not in PARSED:
            return await self.judged(schema.size, verdicts.identity_of, schema)
        key = schema.kind, schema.digest
        found = self._identities.get(key)
        if found is None:
            whole = await self.resolved(schema)
            found = await self.judged(whole.read_size, verdicts.identity_of, whole)
            self._identities.keep(key, found, VERSION_BYTES)
        return found

    async def resolved(self, schema: TopicSchema) -> TopicSchema:
        """A schema with what it refers to, so that it can be read."""
        if not schema.references or schema.imports:
            return schema
        return await references.resolved(schema, self._referred)

    async def _referred(self, reference: SchemaReference) -> StoredSchema | None:
        return await self.numbered(named(reference.subject), reference.version - 1, hidden=True)

    async def judged(self, size: int, judge: Callable[..., Result], *arguments: object) -> Result:
        """What a function says of a definition of that size: of a large one in the thread, in which
        one is looked at at a time.
        """
        if size <= AT_ONCE_BYTES:
            return judge(*arguments)
        return await trio.to_thread.run_sync(judge, *arguments, limiter=self._thread)

    async def check_new(
        self,
        versions: tuple[SchemaVersion, ...],
        schema: TopicSchema,
        strategy: SchemaStrategy,
        follows: Follows = verdicts.check_follows,
    ) -> None:
        """Raise unless a schema that is none of these may be the next version."""
        judge = partial(follows, strategy=strategy, by_itself=not strategy.transitive)
        await self._compare(versions if strategy.transitive else versions[-1:], schema, judge)

    async def check_consumer(
        self, name: Named, schema: TopicSchema, strategy: SchemaStrategy
    ) -> None:
        """Raise unless a consumer with this schema may read the topic, which has one."""
        identity = await self._identity_of(schema)
        if strategy is SchemaStrategy.ALWAYS_COMPATIBLE:
            return
        versions = await self.versions(name)
        strategy, with_all = verdicts.of_consumer(strategy)
        latest = versions.latest
        if latest is not None and latest.identity == identity and not with_all:
            return  # the usual case, in which nothing is read or compared
        compared = versions.versions if with_all else versions.versions[-1:]
        judge = partial(verdicts.check_follows, strategy=strategy, by_itself=not with_all)
        await self._compare(compared, schema, judge)

    async def _compare(
        self, versions: tuple[SchemaVersion, ...], schema: TopicSchema, judge: Follows
    ) -> None:
        """Compare with one version after the other, so that one at a time is in memory."""
        schema = await self.resolved(schema)
        for each in versions:
            old = await self.resolved((await self.by_id(each.id)).schema)
            size = max(old.read_size, schema.read_size)
            if schema.kind is SchemaKind.JSON_SCHEMA:
                size += AT_ONCE_BYTES  # a pattern of a few letters may take long
            await self.judged(size, judge, old, schema)
            await trio.lowlevel.checkpoint()

    # -- changing -----------------------------------------------------------------------------

    async def add(
        self,
        name: Named,
        schema: TopicSchema,
        strategy: SchemaStrategy,
        *,
        user: str = "",
        may_be_new: bool = True,
        follows: Follows = verdicts.check_follows,
    ) -> int:
        """The version of the topic that is this schema, which is added if it is new and may be."""
        identity = await self._identity_of(schema)
        found = (await self.versions(name)).same_as(identity)
        if found is not None:
            return found.version
        path = records.path_of(name)
        stored = StoredSchema(schema, path, user, 0)
        async with self._lists.alone_with(path):
            for _ in range(ATTEMPTS_MAX):
                known = await self._lists.known(path)
                found = known.versions.same_as(identity)
                if found is not None:
                    return found.version
                if not may_be_new:
                    raise IncompatibleSchema(
                        "Schema not found and schema auto updating is disabled."
                    )
                if known.versions.count >= VERSIONS_MAX:
                    raise IncompatibleSchema(
                        f"the topic has {VERSIONS_MAX} versions already, with those that were "
                        "deleted and not deleted for good (force, permanent)"
                    )
                await self.check_new(known.versions.versions, schema, strategy, follows)
                if await self._append(path, known, identity, stored):
                    return known.versions.next_version
                await self._lists.catch_up(path)
        raise BadVersion(f"other brokers keep adding schemas to {records.name_of(name)}")

    async def _append(
        self, path: str, known: KnownVersions, identity: str, stored: StoredSchema
    ) -> bool:
        """Store a schema as the next version; False if another broker was faster."""
        stored = replace(stored, created_ms=self._clock.wall_ms())
        with trio.CancelScope(shield=True):
            schema_id = 1 + await self._metadata.next(records.IDS)
            data = records.encode_schema(stored)
            record_version = await self._metadata.put(records.path_of_id(schema_id), data, ABSENT)
            try:
                if stored.schema.references:
                    known = await self._noted(path, known, stored.schema, schema_id)
                longer = known.versions.with_one_more(schema_id, identity)
                await self._lists.write(path, longer, known.store_version)
            except (BadVersion, IncompatibleSchema) as error:
                await self._metadata.delete(records.path_of_id(schema_id), record_version)
                self._schemas.drop(schema_id)  # whoever read its note may have read it
                await self._referrers.take_back(stored.schema, schema_id)
                if isinstance(error, IncompatibleSchema):
                    raise
                return False
        return True

    async def _noted(
        self, path: str, known: KnownVersions, schema: TopicSchema, schema_id: int
    ) -> KnownVersions:
        """Note what a new schema refers to, which may be in its own list: returns that as it is
        then.
        """
        await self._referrers.note(schema, schema_id)
        again = await self._lists.known(path)
        if again.versions.ids != known.versions.ids:
            raise BadVersion(f"{path} has been written by another broker")
        return again

    # -- deleting -----------------------------------------------------------------------------

    async def hide(self, name: Named) -> int | None:
        """Delete all versions, so that any schema may be the next one; returns the number that the
        deletion has. None if there never was a schema.
        """
        path = records.path_of(name)

        async def check(versions: SchemaVersions) -> None:
            await self._referrers.check_none(versions, versions.versions, but_in=path)

        async with self._lists.alone_with(path):
            before = await self._lists.change(path, lambda versions: versions.deleted(), check)
        return None if before is None else before.next_version

    async def hide_one(self, name: Named, number: int) -> bool:
        """Delete one version; False if there is none of that number."""

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            found = versions.numbered(number)
            return None if found is None else versions.without(found)

        return await self._change_one(name, number, change) is not None

    async def forget_one(self, name: Named, number: int) -> bool:
        """Delete one version that is hidden, and its schema; False if none of that number is."""
        found: list[SchemaVersion] = []

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            found[:] = [each for each in versions.hidden_versions if each.version == number]
            return versions.cleared_of(found[0]) if found else None

        with trio.CancelScope(shield=True):
            if await self._change_one(name, number, change) is None:
                return False
            await self._delete_schemas([found[0].id])
        return True

    async def decide(self, subject: Subject, strategy: SchemaStrategy | None) -> None:
        """Store the strategy of a subject that belongs to no topic; None to take it back."""

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            text = "" if strategy is None else strategy.value
            return replace(versions, strategy=text) if versions.strategy != text else None

        path = records.path_of(subject)
        async with self._lists.alone_with(path):
            await self._lists.change(path, change, anew=True)

    async def _change_one(self, name: Named, number: int, change: Change) -> SchemaVersions | None:
        """Delete one version, to which no schema refers."""
        path = records.path_of(name)

        async def check(versions: SchemaVersions) -> None:
            deleted = [each for each in _every(versions) if each.version == number]
            await self._referrers.check_none(versions, deleted)

        async with self._lists.alone_with(path):
            return await self._lists.change(path, change, check)

    async def forget(self, name: Named) -> None:
        """Delete everything of a topic that is being deleted. If schemas of others refer to one of
        its own, all of them are hidden instead.
        """
        await self._delete(records.path_of(name))

    async def forget_unreferred(self, name: Named) -> None:
        """The same, but raise `NotAllowed` if there are such schemas."""
        await self._delete(records.path_of(name), may_hide=False)

    async def forget_all(self, namespace: NamespaceName) -> None:
        """The same for a namespace, with the schemas of topics that never were there."""
        for path in await self._metadata.children(f"{records.LISTS}/{namespace}"):
            await self._delete(f"{records.LISTS}/{namespace}/{path}")

    async def _delete(self, path: str, *, may_hide: bool = True) -> None:
        """Delete a list, and then its schemas: one that another broker adds meanwhile begins a new
        list.
        """
        async with self._lists.alone_with(path):
            ids = await self._delete_list(path, may_hide=may_hide)
        with trio.CancelScope(shield=True):
            await self._delete_schemas(ids)

    async def _delete_list(self, path: str, *, may_hide: bool) -> list[int]:
        """The ids of all schemas that it had."""
        while True:
            known = await self._lists.known(path)
            if known.store_version == ABSENT:
                return []
            try:
                every = _every(known.versions)
                await self._referrers.check_none(known.versions, every, but_in=path)
            except NotAllowed:
                if not may_hide:
                    raise
                await self._lists.change(path, _hidden)
                return []
            try:
                with trio.CancelScope(shield=True):
                    await self._metadata.delete(path, known.store_version)
                return known.versions.ids
            except (BadVersion, NotFound):
                await self._lists.catch_up(path)
            finally:
                self._lists.drop(path)

    async def _delete_schemas(self, ids: Iterable[int]) -> None:
        for schema_id in ids:
            self._schemas.drop(schema_id)
            path = records.path_of_id(schema_id)
            found = await self._metadata.get(path)
            if found is not None:
                with suppress(BadVersion, NotFound):  # another broker deletes it, too
                    await self._metadata.delete(path, found.version)
                with suppress(Corrupted):  # a note of what is not there counts for nothing
                    schema = records.decode_schema(found.value).schema
                    await self._referrers.take_back(schema, schema_id)


def _every(versions: SchemaVersions) -> tuple[SchemaVersion, ...]:
    return (*versions.versions, *versions.hidden_versions)


def _hidden(versions: SchemaVersions) -> SchemaVersions | None:
    return versions.deleted() if versions.versions else None
