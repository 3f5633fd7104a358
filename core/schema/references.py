"""What the references of a schema lead to.

A schema of serializers may need others: types of Avro that it names, documents of JSON Schema,
files of protobuf. It refers to each by a name of its own, and by subject and version; these may
refer to more. Serializers register the innermost first, and versions do not change, so references
never lead back to where they began. Of two that have one name the first one holds, depth first, as
in Confluent's registry (`AbstractSchemaProvider.java`, 8.5).

Limits: `REFERENCES_MAX` of one schema, `DEPTH_MAX` one behind another, `IMPORTS_MAX` schemas of
`IMPORTS_BYTES_MAX` bytes together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from msgspec.structs import replace

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.definitions import shown
from magnetar.core.schema.records import StoredSchema
from magnetar.core.schema.schema import ImportedSchema, SchemaKind, SchemaReference, TopicSchema

REFERENCES_MAX: Final = 100
DEPTH_MAX: Final = 20
IMPORTS_MAX: Final = 250
IMPORTS_BYTES_MAX: Final = 1024 * 1024

ReadVersion = Callable[[SchemaReference], Awaitable[StoredSchema | None]]
"""The version that a reference leads to, also if it is hidden."""


async def resolved(schema: TopicSchema, read: ReadVersion) -> TopicSchema:
    """The schema, with all that its references lead to."""
    if len(schema.references) > REFERENCES_MAX:
        raise IncompatibleSchema(f"a schema has at most {REFERENCES_MAX} references")
    found = _Imports(schema.kind, read)
    await found.follow(schema.references, DEPTH_MAX)
    return replace(schema, imports=tuple(found.imports))


class _Imports:
    """Follows the references of one schema."""

    def __init__(self, kind: SchemaKind, read: ReadVersion) -> None:
        self.imports: list[ImportedSchema] = []
        self._kind = kind
        self._read = read
        self._names: set[str] = set()
        self._bytes_left = IMPORTS_BYTES_MAX

    async def follow(self, references: Iterable[SchemaReference], depth: int) -> None:
        for each in references:
            if each.name in self._names:
                continue
            self._names.add(each.name)
            found = await self._found(each)
            if len(self._names) > IMPORTS_MAX:
                raise IncompatibleSchema(f"references lead to more than {IMPORTS_MAX} schemas")
            if not depth:
                raise IncompatibleSchema(f"references lead more than {DEPTH_MAX} schemas deep")
            self._bytes_left -= len(found.definition)
            if self._bytes_left < 0:
                text = f"references lead to more than {IMPORTS_BYTES_MAX} bytes of schemas"
                raise IncompatibleSchema(text)
            await self.follow(found.references, depth - 1)
            self.imports.append(ImportedSchema(each.name, found.definition))

    async def _found(self, reference: SchemaReference) -> TopicSchema:
        stored = await self._read(reference)
        if stored is None:
            raise missing(reference)
        if stored.schema.kind is not self._kind:
            where = f"version {reference.version} of {shown(reference.subject)}"
            raise IncompatibleSchema(f"{where} is a schema in another language")
        return stored.schema


def missing(reference: SchemaReference) -> IncompatibleSchema:
    """The error for a reference to what is not there."""
    return IncompatibleSchema(
        f"{shown(reference.name)} refers to version {reference.version} of "
        f"{shown(reference.subject)}, which is not there"
    )
