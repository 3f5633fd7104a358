"""Whether every message of a writer can be read by a reader, as registries beside Kafka ask. Pure.

The verdicts are those of `SchemaCompatibility.java` of Avro 1.12, which is stricter than its
decoders (`resolution.py`), and more lenient with unions:

    record, enum, fixed     names without namespaces agree, or the writer's is an alias of the
                            reader's
    enum                    the reader has all symbols of the writer, or a default
    record      each field of the reader has a counterpart, by name or alias, that is read; or it
                has a default, which is not looked at
    reader's union          any branch will do

Invariant: as in `resolution.py`, a pair of types counts as compatible where it occurs in itself,
and the verdict takes at most as many steps as `Effort` has.
"""

from __future__ import annotations

from magnetar.core.schema.avro.model import NAMED, NO_DEFAULT, AvroField, AvroNode
from magnetar.core.schema.avro.resolution import PROMOTIONS, READ
from magnetar.core.schema.definitions import Effort


def incompatibility(writer: AvroNode, reader: AvroNode) -> str:
    """Why not; empty if it can."""
    return Comparison(Effort()).reason(writer, reader)


class Comparison:
    """Compares one writer's schema with one reader's."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._known: dict[tuple[AvroNode, AvroNode], str] = {}

    def reason(self, writer: AvroNode, reader: AvroNode) -> str:
        """The first reason against a pair of types."""
        pair = writer, reader
        if pair not in self._known:
            self._known[pair] = READ  # where it occurs in itself
            with self._effort:
                self._known[pair] = self._reason(writer, reader)
        return self._known[pair]

    def _reason(self, writer: AvroNode, reader: AvroNode) -> str:
        if writer.kind == "union":
            reasons = (self.reason(branch, reader) for branch in writer.parts)
            return next(filter(None, reasons), READ)
        if writer.kind == reader.kind:
            return self._same_kind(writer, reader)
        if reader.kind == "union":
            if any(not self.reason(writer, branch) for branch in reader.parts):
                return READ
            return f"no branch of the reader's union takes {writer.full_name}"
        if reader.kind in PROMOTIONS.get(writer.kind, ()):
            return READ
        return f"{writer.full_name} is not read as {reader.full_name}"

    def _same_kind(self, writer: AvroNode, reader: AvroNode) -> str:
        named_alike = writer.name == reader.name or writer.full_name in reader.aliases
        if writer.kind in NAMED and not named_alike:
            return f"{writer.full_name} is not named {reader.full_name}"
        if writer.size != reader.size:
            return f"{writer.full_name} has another size"
        if writer.kind == "record":
            return self._record(writer, reader)
        self._effort.look_through(len(writer.symbols) + len(reader.symbols))
        missing = set(writer.symbols) - set(reader.symbols)
        if missing and reader.default_symbol is None:
            return f"{reader.full_name} lacks the symbol {min(missing)}"
        return self.reason(writer.parts[0], reader.parts[0]) if writer.parts else READ

    def _record(self, writer: AvroNode, reader: AvroNode) -> str:
        names = sum(1 + len(field.aliases) for field in reader.fields.values())
        self._effort.look_through(names)
        for name, field in reader.fields.items():
            found = _counterparts(writer, field)
            if len(found) > 1:
                return f"{reader.full_name}.{name} has several counterparts by its aliases"
            if found:
                reason = self.reason(found[0].type, field.type)
            elif field.default is not NO_DEFAULT:
                continue
            else:
                reason = f"{reader.full_name}.{name} has no default, and the writer lacks it"
            if reason:
                return reason
        return READ


def _counterparts(writer: AvroNode, field: AvroField) -> list[AvroField]:
    names = (field.name, *field.aliases)
    return [writer.fields[name] for name in names if name in writer.fields]
