"""A writer's schema under the names that its reader gives it by aliases. Pure.

As `Schema.applyAliases` of Avro 1.12: the reader's aliases of records, enums, fixed types and
fields are looked for in the writer's schema, which gets the reader's names there.
"""

from __future__ import annotations

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.defaults import fits
from magnetar.core.schema.avro.identity import identity_of
from magnetar.core.schema.avro.model import NAMED, NO_DEFAULT, AvroField, AvroNode
from magnetar.core.schema.definitions import Effort, shown


def renamed(writer: AvroNode, reader: AvroNode, effort: Effort) -> AvroNode:
    """The writer's schema with the reader's names."""
    found = ReaderAliases(effort)
    found.gather(reader)
    if (not found.types and not found.fields) or identity_of(writer) == identity_of(reader):
        return writer
    return found.applied(writer)


class ReaderAliases:
    """What a reader calls types and fields that a writer has under other names."""

    def __init__(self, effort: Effort) -> None:
        self.types: dict[str, str] = {}
        self.fields: dict[str, dict[str, str]] = {}
        """By the name of the record."""
        self._effort = effort
        self._seen: set[AvroNode] = set()
        self._made: dict[AvroNode, AvroNode] = {}

    def gather(self, node: AvroNode) -> None:
        """Note the aliases of a reader's schema."""
        with self._effort:
            self._effort.look_through(len(node.aliases))
            for alias in node.aliases:
                self.types[alias] = node.full_name
            if node in self._seen:
                return
            self._seen.add(node)
            for field in node.fields.values():
                for alias in field.aliases:
                    self.fields.setdefault(node.full_name, {})[alias] = field.name
                self.gather(field.type)
            for part in node.parts:
                self.gather(part)
            if node.full_name in self.fields:
                for alias in node.aliases:
                    self.fields[alias] = self.fields[node.full_name]

    def applied(self, node: AvroNode) -> AvroNode:
        """A copy of a writer's schema with these names."""
        with self._effort:
            if node in self._made:
                return self._made[node]
            self._made[node] = made = AvroNode(node.kind)
            made.full_name = node.full_name
            if node.kind in NAMED:
                made.full_name = self.types.get(node.full_name, node.full_name)
            made.symbols, made.default_symbol = node.symbols, node.default_symbol
            made.size = node.size
            made.parts = tuple(self.applied(part) for part in node.parts)
            names = self.fields.get(made.full_name, {})
            for field in node.fields.values():
                name = names.get(field.name, field.name)
                if name in made.fields:
                    raise IncompatibleSchema(f"two fields have the alias {shown(name)}")
                made.fields[name] = AvroField(name, self.applied(field.type))
                if field.default is not NO_DEFAULT and not self._fits(field):
                    raise IncompatibleSchema(
                        f"the default of the writer's {shown(name)} is not of its type"
                    )
            return made

    def _fits(self, field: AvroField) -> bool:
        """Avro looks at a writer's defaults here, where it makes the field anew."""
        return fits(field.type, field.default, self._effort)
