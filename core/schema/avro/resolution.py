"""Whether a reader with one schema can read what was written with another. Pure.

The verdicts are those of Avro's decoders, which Pulsar asks (`Resolver.java` and
`Symbol.hasErrors` of 1.12, through `SchemaValidatorBuilder`). Avro has a stricter judge, too
(`compatibility.py`).

    the same primitive, or int -> long -> float -> double, string <-> bytes      read
    record      whatever their names: each field of the reader is in the writer's record and read,
                or has a default
    enum        their names without namespaces agree; a symbol that the reader lacks is an error of
                the message that has it, not of the schemas
    fixed       names and sizes agree
    array, map  what is in them is read
    writer's union      each branch is read
    reader's union      the branch is read that is chosen for the writer's type: of the same full
                name; else the first record whose fields are read (one of the same short name
                before others); else of the same unnamed type; else the first promotion. Once
                chosen, no other branch is tried
    two unions of one structure     read, whatever their namespaces

A pair of records that is being compared counts as read where it occurs in itself. Invariant: the
verdict takes at most as many steps as `Effort` has.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.schema.avro.aliases import renamed
from magnetar.core.schema.avro.defaults import fits
from magnetar.core.schema.avro.model import NAMED, NO_DEFAULT, AvroNode
from magnetar.core.schema.definitions import Effort

PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""What values of a type are read as, too."""
READ: Final = ""
"""No reason against it."""


def refusal(writer: AvroNode, reader: AvroNode) -> str:
    """Why the reader cannot read it; empty if it can. `IncompatibleSchema` if that is not found out
    within limits.
    """
    effort = Effort()
    action = Resolution(effort).resolve(renamed(writer, reader, effort), reader)
    return action.reason(effort, set())


class ResolvedPair:
    """What a decoder does with a pair of types: it succeeds if all of `parts` do."""

    __slots__ = ("error", "parts")

    def __init__(self, error: str = READ) -> None:
        self.error = error
        self.parts: list[ResolvedPair] = []

    def reason(self, effort: Effort, seen: set[ResolvedPair]) -> str:
        """The first error in it."""
        if self.error or self in seen:
            return self.error
        seen.add(self)
        with effort:
            reasons = (each.reason(effort, seen) for each in self.parts)
            return next(filter(None, reasons), READ)


NOTHING: Final = ResolvedPair()


class Resolution:
    """Resolves one writer's schema with one reader's."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._records: dict[tuple[AvroNode, AvroNode], ResolvedPair] = {}

    def resolve(self, writer: AvroNode, reader: AvroNode) -> ResolvedPair:
        """What a decoder does with that pair of types."""
        with self._effort:
            if writer.kind == "union":
                return self._writer_union(writer, reader)
            if writer.kind == reader.kind:
                return self._same_kind(writer, reader)
            if reader.kind == "union":
                return self._reader_union(writer, reader)
            if reader.kind in PROMOTIONS.get(writer.kind, ()):
                return NOTHING
            return ResolvedPair(f"{writer.full_name} is not read as {reader.full_name}")

    def _same_kind(self, writer: AvroNode, reader: AvroNode) -> ResolvedPair:
        if writer.kind == "record":
            return self._record(writer, reader)
        if writer.kind in NAMED and writer.name != reader.name:
            return ResolvedPair(f"{writer.full_name} is not read as {reader.full_name}")
        if writer.size != reader.size:
            return ResolvedPair(f"{writer.full_name} has another size")
        action = ResolvedPair()
        if writer.parts:  # of an array or a map
            action.parts = [self.resolve(writer.parts[0], reader.parts[0])]
        return action

    def _record(self, writer: AvroNode, reader: AvroNode) -> ResolvedPair:
        known = self._records.get((writer, reader))
        if known is not None:
            return known
        # before its fields, which may contain it
        self._records[writer, reader] = action = ResolvedPair()
        self._effort.look_through(len(writer.fields) + len(reader.fields))
        actions = [
            self.resolve(field.type, reader.fields[name].type)
            for name, field in writer.fields.items()
            if name in reader.fields
        ]
        for name, field in reader.fields.items():
            if name in writer.fields:
                continue
            if field.default is NO_DEFAULT:
                reason = f"{reader.full_name}.{name} has no default, and the writer lacks it"
            elif not fits(field.type, field.default, self._effort):
                reason = f"the default of {reader.full_name}.{name} is not of its type"
            else:
                continue
            self._records[writer, reader] = action = ResolvedPair(reason)
            return action
        action.parts = actions
        return action

    # -- unions -------------------------------------------------------------------------------

    def _writer_union(self, writer: AvroNode, reader: AvroNode) -> ResolvedPair:
        if Likeness(self._effort).alike(writer, reader):
            return NOTHING
        action = ResolvedPair()
        action.parts = [self.resolve(branch, reader) for branch in writer.parts]
        return action

    def _reader_union(self, writer: AvroNode, reader: AvroNode) -> ResolvedPair:
        branch = self._branch(writer, reader)
        if branch is None:
            return ResolvedPair(f"{writer.full_name} is in no branch of the reader's union")
        return self.resolve(writer, branch)

    def _branch(self, writer: AvroNode, reader: AvroNode) -> AvroNode | None:
        """The branch of a reader's union that takes what is written."""
        self._effort.look_through(len(reader.parts))
        by_structure: AvroNode | None = None
        for branch in reader.parts:
            if branch.kind != writer.kind:
                continue
            if branch.kind not in NAMED or branch.full_name == writer.full_name:
                return branch
            better = by_structure is None or branch.name == writer.name
            if branch.kind == "record" and better and self._fields_match(writer, branch):
                by_structure = branch
        if by_structure is not None:
            return by_structure
        promoted = PROMOTIONS.get(writer.kind, ())
        return next((branch for branch in reader.parts if branch.kind in promoted), None)

    def _fields_match(self, writer: AvroNode, reader: AvroNode) -> bool:
        """Whether there is no error in the fields themselves; what is in them may have some."""
        with self._effort:
            action = self._record(writer, reader)
        return not action.error and not any(part.error for part in action.parts)


class Likeness:
    """Whether two types have one structure, with the same names but for namespaces."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._records: dict[tuple[AvroNode, AvroNode], bool] = {}

    def alike(self, one: AvroNode, other: AvroNode) -> bool:
        """See the class."""
        with self._effort:
            if one.kind != other.kind or one.size != other.size or one.symbols != other.symbols:
                return False
            if one.kind in NAMED and one.name != other.name:
                return False
            self._effort.look_through(len(one.symbols))
            if one.kind == "record":
                return self._records_alike(one, other)
            if len(one.parts) != len(other.parts):
                return False
            return all(self.alike(*pair) for pair in zip(one.parts, other.parts, strict=True))

    def _records_alike(self, one: AvroNode, other: AvroNode) -> bool:
        pair = one, other
        if pair not in self._records:
            self._records[pair] = True  # where it occurs in itself
            self._records[pair] = list(one.fields) == list(other.fields) and all(
                self.alike(field.type, other.fields[name].type)
                for name, field in one.fields.items()
            )
        return self._records[pair]
