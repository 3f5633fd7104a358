"""Which schemas refer to which versions: notes in the lists of the versions.

A schema is noted in the lists of what it refers to after its record is written, and before its own
list is. So a version that is referred to is not deleted, whichever broker is asked: a note is
written over the list that has the version, and the deletion over the list without the note.

    a crash before the schema's list is written    a note of a schema that no list has: it counts
                                                   for nothing after `REGISTERING_MS_MAX`
    ... of a deletion, before notes are removed    a note of a schema without a record; the same

Limit: `REFERRERS_MAX` notes in a list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import IncompatibleSchema, NotAllowed, NotFound
from magnetar.core.schema import records, references
from magnetar.core.schema.lists import SchemaLists
from magnetar.core.schema.records import SchemaVersion, SchemaVersions, StoredSchema
from magnetar.core.schema.schema import SchemaReference, TopicSchema
from magnetar.core.schema.subjects import named

REFERRERS_MAX: Final = 10_000
"""So many take 110 KB of the list."""
REGISTERING_MS_MAX: Final = 60_000
"""What a registration takes at most from its record to its list."""


class Referrers:
    """See the module's docstring."""

    def __init__(
        self,
        lists: SchemaLists,
        by_id: Callable[[int], Awaitable[StoredSchema]],
        clock: Clock,
    ) -> None:
        self._lists = lists
        self._by_id = by_id
        self._clock = clock

    async def note(self, schema: TopicSchema, schema_id: int) -> None:
        """Note a new schema; raises for a reference to what is not there, or is hidden."""
        noted: set[tuple[str, int]] = set()
        for each in schema.references:
            if (each.subject, each.version) not in noted:
                noted.add((each.subject, each.version))
                await self._note(each, schema_id)

    async def _note(self, reference: SchemaReference, schema_id: int) -> None:
        number = reference.version - 1

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            if versions.numbered(number) is None:
                return None
            if versions.referrer_count >= REFERRERS_MAX:
                text = f"{REFERRERS_MAX} schemas refer to versions of {reference.subject} already"
                raise IncompatibleSchema(text)
            return versions.referred_to(number, schema_id)

        path = records.path_of(named(reference.subject))
        async with self._lists.alone_with(f"notes in {path}"):  # which waits for no other
            noted = await self._lists.change(path, change)
        if noted is None:
            raise references.missing(reference)

    async def take_back(self, schema: TopicSchema, schema_id: int) -> None:
        """Remove the notes of a schema that is not there any more."""

        def change(versions: SchemaVersions) -> SchemaVersions | None:
            changed = versions.not_referred_to(schema_id)
            return None if changed.referrers == versions.referrers else changed

        for path in sorted({records.path_of(named(each.subject)) for each in schema.references}):
            async with self._lists.alone_with(f"notes in {path}"):
                await self._lists.change(path, change)

    async def of(self, versions: SchemaVersions, number: int, *, hidden: bool) -> list[int]:
        """The ids of schemas that refer to a version; without `hidden`, of those that serializers
        see.
        """
        ids = versions.referrers.get(number, ())
        return sorted([each for each in ids if await self._list_of(each, hidden=hidden)])

    async def check_none(
        self, versions: SchemaVersions, deleted: Iterable[SchemaVersion], but_in: str = ""
    ) -> None:
        """Raise `NotAllowed` if a schema refers to a version that is deleted. Hidden ones count,
        too, but those of a list that is deleted as a whole.
        """
        numbers = versions.referrers.keys() & {each.version for each in deleted}
        if numbers:
            await self._lists.catch_up()
        for number in sorted(numbers):
            for each in versions.referrers[number]:
                if await self._list_of(each, hidden=True) not in ("", but_in):
                    raise NotAllowed(f"schema {each} refers to version {number + 1}")

    async def _list_of(self, schema_id: int, *, hidden: bool) -> str:
        """The list that a schema which was noted is in, or is about to be; nothing if in none."""
        try:
            stored = await self._by_id(schema_id)
        except NotFound:
            return ""
        versions = (await self._lists.known(stored.path)).versions
        is_there = any(each.id == schema_id for each in versions.versions)
        if hidden and not is_there:
            is_new = self._clock.wall_ms() - stored.created_ms < REGISTERING_MS_MAX
            is_there = is_new or schema_id in versions.ids
        return stored.path if is_there else ""
