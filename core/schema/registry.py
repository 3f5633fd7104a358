"""The registry: the schemas of all topics, which every broker of a cluster may add to.

It has no owner. A new schema is compared with the versions that there are, its record is written
under an id of its own, and then the topic's list over the version that was compared: of two brokers
that add at a time one loses (`BadVersion`), removes its record, and begins again with the other's
schema. So a list names only records that exist, and every version was compared with those before
it.

    a crash before the list is written      a record that no list names, and nobody reads
    ... after it                            the version is there

What is read often is kept in memory: lists, which watches keep up to date, and schemas, which never
change. A version or an id that is not known is looked for in the store, since the client may have
it from another broker. The store's server may be behind, too: it catches up before the second look,
and before this broker tries again what another has done first.

Limits: `size_max` bytes for a schema, `VERSIONS_MAX` versions of a topic, the memory of both
caches; and large definitions are compared in one thread, one at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, TypeVar
from urllib.parse import unquote_plus

import trio
from msgspec.structs import replace

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    IncompatibleSchema,
    NotAllowed,
    NotFound,
)
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.core.schema import records, verdicts
from magnetar.core.schema.limited_cache import LimitedCache
from magnetar.core.schema.records import (
    Named,
    SchemaVersion,
    SchemaVersions,
    StoredSchema,
    Subject,
)
from magnetar.core.schema.schema import PARSED, SchemaKind, TopicSchema

Result = TypeVar("Result")
Follows = Callable[..., None]
"""Raises unless a schema may follow another one: `verdicts.check_follows`, or its like."""

ROOTS: Final = (records.LISTS, records.SUBJECTS)
VERSIONS_MAX: Final = 1_000
"""Versions of a topic, with those that were deleted. A list of so many has 130 KB."""
ATTEMPTS_MAX: Final = 20
"""Attempts to write a list that other brokers write at the same time."""
LISTS_BYTES_MAX: Final = 8 * 1024 * 1024
SCHEMAS_BYTES_MAX: Final = 8 * 1024 * 1024
IDENTITIES_BYTES_MAX: Final = 1024 * 1024
VERSION_BYTES: Final = 400
"""The memory of one version in a list; of a list without any, too."""
AT_ONCE_BYTES: Final = 1024
"""Definitions up to this size are read and compared on the loop, which takes a millisecond or two,
and 20 ms for those that are made to take long.
"""
SIZE_MAX: Final = 256 * 1024


class KnownVersions:
    """A list as the store had it."""

    __slots__ = ("store_version", "versions")

    def __init__(self, versions: SchemaVersions, store_version: int) -> None:
        self.versions = versions
        self.store_version = store_version


class SchemaRegistry:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, clock: Clock, size_max: int = SIZE_MAX) -> None:
        self._metadata = metadata
        self._clock = clock
        self._size_max = size_max
        self._lists: LimitedCache[str, KnownVersions] = LimitedCache(LISTS_BYTES_MAX)
        self._schemas: LimitedCache[int, StoredSchema] = LimitedCache(SCHEMAS_BYTES_MAX)
        self._identities: LimitedCache[tuple[SchemaKind, bytes], str] = LimitedCache(
            IDENTITIES_BYTES_MAX
        )
        """Of definitions that were parsed before: a thousand producers have the same one."""
        self._changes = 0
        """Counts changes, so that no list read before one is kept after it."""
        self._locks: dict[str, trio.Lock] = {}
        """Of the lists that this broker is changing."""
        self._thread = trio.CapacityLimiter(1)

    def open(self) -> None:
        """Follow what other brokers change. Before anything is read."""
        for root in ROOTS:
            self._metadata.watch(root, self._forget)

    def _forget(self, path: str) -> None:
        self._changes += 1
        self._lists.drop(path)
        if path in ROOTS:  # anything below may have changed
            self._lists.clear()

    # -- reading ------------------------------------------------------------------------------

    async def versions(self, name: Named) -> SchemaVersions:
        """The versions of a topic; none for one without schemas, or that does not exist."""
        return (await self._known(records.path_of(name))).versions

    async def _known(self, path: str) -> KnownVersions:
        found = self._lists.get(path)
        if found is not None:
            return found
        changes = self._changes
        stored = await self._metadata.get(path)
        if stored is None:
            known = KnownVersions(SchemaVersions(), ABSENT)
        else:
            known = KnownVersions(records.decode_versions(stored.value), stored.version)
        if changes == self._changes:
            self._lists.keep(path, known, VERSION_BYTES * (1 + known.versions.count))
        return known

    async def _catch_up(self, path: str) -> None:
        """Read a list anew, as it is by now: the store's server may be behind others."""
        await self._metadata.sync()
        self._forget(path)

    async def latest(self, name: Named) -> tuple[int, StoredSchema] | None:
        """The latest version and its schema."""
        latest = (await self.versions(name)).latest
        return None if latest is None else (latest.version, await self.by_id(latest.id))

    async def numbered(self, name: Named, version: int) -> StoredSchema | None:
        """One version, which another broker may have added a moment ago."""
        path = records.path_of(name)
        known = await self._known(path)
        if version >= known.versions.next_version:
            await self._catch_up(path)
            known = await self._known(path)
        found = known.versions.numbered(version)
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
            return await self.judged(schema.size, _checked, schema)
        key = schema.kind, hashlib.sha256(schema.definition).digest()
        found = self._identities.get(key)
        if found is None:
            found = await self.judged(schema.size, _checked, schema)
            self._identities.keep(key, found, VERSION_BYTES)
        return found

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
        for each in versions:
            old = (await self.by_id(each.id)).schema
            await self.judged(max(old.size, schema.size), judge, old, schema)
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
        stored = StoredSchema(schema, path, user, self._clock.wall_ms())
        async with self._alone_with(path):
            for _ in range(ATTEMPTS_MAX):
                known = await self._known(path)
                found = known.versions.same_as(identity)
                if found is not None:
                    return found.version
                if not may_be_new:
                    raise IncompatibleSchema(
                        "Schema not found and schema auto updating is disabled."
                    )
                if known.versions.count >= VERSIONS_MAX:
                    raise IncompatibleSchema(f"the topic has {VERSIONS_MAX} versions already")
                await self.check_new(known.versions.versions, schema, strategy, follows)
                if await self._append(path, known, identity, stored):
                    return known.versions.next_version
                await self._catch_up(path)
        raise BadVersion(f"other brokers keep adding schemas to {records.name_of(name)}")

    async def _append(
        self, path: str, known: KnownVersions, identity: str, stored: StoredSchema
    ) -> bool:
        """Store a schema as the next version; False if another broker was faster."""
        with trio.CancelScope(shield=True):
            schema_id = 1 + await self._metadata.next(records.IDS)
            data = records.encode_schema(stored)
            record_version = await self._metadata.put(records.path_of_id(schema_id), data, ABSENT)
            try:
                longer = known.versions.with_one_more(schema_id, identity)
                await self._write(path, longer, known.store_version)
            except BadVersion:
                await self._metadata.delete(records.path_of_id(schema_id), record_version)
                return False
        return True

    async def _write(self, path: str, versions: SchemaVersions, expected: int) -> None:
        try:
            await self._metadata.put(path, records.encode_versions(versions), expected)
        except AlreadyExists as error:
            raise BadVersion(f"{path} has been written by another broker") from error
        finally:
            self._forget(path)

    async def hide(self, name: Named) -> int | None:
        """Delete all versions, so that any schema may be the next one; returns the number that the
        deletion has. None if there never was a schema.
        """
        before = await self._change(name, lambda versions: versions.deleted())
        return None if before is None else before.next_version

    async def hide_one(self, name: Named, number: int) -> bool:
        """Delete one version; False if there is none of that number."""

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            found = versions.numbered(number)
            return None if found is None else versions.without(found)

        return await self._change(name, change) is not None

    async def forget_one(self, name: Named, number: int) -> bool:
        """Delete one version that is hidden, and its schema; False if none of that number is."""
        found: list[SchemaVersion] = []

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            found[:] = [each for each in versions.hidden_versions if each.version == number]
            return versions.cleared_of(found[0]) if found else None

        with trio.CancelScope(shield=True):
            if await self._change(name, change) is None:
                return False
            await self._delete_schemas([found[0].id])
        return True

    async def decide(self, subject: Subject, strategy: SchemaStrategy | None) -> None:
        """Store the strategy of a subject that belongs to no topic; None to take it back."""

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            text = "" if strategy is None else strategy.value
            return replace(versions, strategy=text) if versions.strategy != text else None

        await self._change(subject, change, anew=True)

    async def _change(
        self,
        name: Named,
        change: Callable[[SchemaVersions], SchemaVersions | None],
        *,
        anew: bool = False,
    ) -> SchemaVersions | None:
        """Change a list, which need not be there if it is made `anew`; returns what it was before.
        None if nothing is to be changed.
        """
        path = records.path_of(name)
        async with self._alone_with(path):
            for _ in range(ATTEMPTS_MAX):
                known = await self._known(path)
                if known.store_version == ABSENT and not anew:
                    return None
                changed = change(known.versions)
                if changed is None:
                    return None
                try:
                    with trio.CancelScope(shield=True):
                        await self._write(path, changed, known.store_version)
                except BadVersion:
                    await self._catch_up(path)
                    continue
                return known.versions
        raise BadVersion(f"other brokers keep adding schemas to {records.name_of(name)}")

    async def forget(self, name: Named) -> None:
        """Delete everything of a topic that is being deleted."""
        await self._delete(records.path_of(name))

    async def forget_all(self, namespace: NamespaceName) -> None:
        """The same for a namespace, with the schemas of topics that never were there."""
        for path in await self._metadata.children(f"{records.LISTS}/{namespace}"):
            await self._delete(f"{records.LISTS}/{namespace}/{path}")

    async def _delete(self, path: str) -> None:
        """Delete a list, and then its schemas: one that another broker adds meanwhile begins a new
        list.
        """
        async with self._alone_with(path):
            while True:
                known = await self._known(path)
                if known.store_version == ABSENT:
                    return
                try:
                    with trio.CancelScope(shield=True):
                        await self._metadata.delete(path, known.store_version)
                        await self._delete_schemas(known.versions.ids)
                        return
                except (BadVersion, NotFound):
                    await self._catch_up(path)
                finally:
                    self._forget(path)

    async def _delete_schemas(self, ids: Iterable[int]) -> None:
        for schema_id in ids:
            self._schemas.drop(schema_id)
            path = records.path_of_id(schema_id)
            found = await self._metadata.get(path)
            if found is not None:
                with suppress(BadVersion, NotFound):  # another broker deletes it, too
                    await self._metadata.delete(path, found.version)

    @asynccontextmanager
    async def _alone_with(self, path: str) -> AsyncIterator[None]:
        """Change a list, one task at a time: hundreds of producers may attach at once."""
        lock = self._locks.setdefault(path, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._locks.pop(path, None)


def _checked(schema: TopicSchema) -> str:
    verdicts.check_valid(schema)
    return verdicts.identity_of(schema)
