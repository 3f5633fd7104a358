"""Which schemas are valid, which are the same, and which may follow which. Pure.

The rules are Pulsar's (`SchemaRegistryServiceImpl.java` of 4.2 and the checks beside it):

    a definition in Avro      by Avro's decoders (`avro/resolution.py`)
    JSON_SCHEMA               what is valid by one is valid by the other (`json_schema/`)
    PROTOBUF_TEXT             by protobuf's rules for updating messages (`protobuf/`)
    PROTOBUF_NATIVE           the root message keeps its name
    KEY_VALUE                 key and value each by their kind, which stays
    EXTERNAL                  any definition: it is for another registry to judge (PIP-420)
    all others                the kind stays

One is the same as another if kind and definition are; for Avro, if what it means is. Of pairs the
kinds of key and value and their encoding count, too, which are properties: Pulsar compares only
definitions (`SchemaHash.java`), and takes INT32 for INT64 there, since both have none.

Raises `IncompatibleSchema` with a reason. Invariant: every call ends within the limits of the
parser and of `Effort`, whatever the definitions are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import ModuleType
from typing import Final, TypeVar

import msgspec

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.schema import key_value, protobuf_native
from magnetar.core.schema.avro import compatibility, identity, parser, resolution
from magnetar.core.schema.avro.model import AvroNode
from magnetar.core.schema.definitions import shown
from magnetar.core.schema.schema import (
    DEFINED_IN_AVRO,
    OF_SERIALIZERS,
    PARSED,
    WITHOUT,
    SchemaKind,
    TopicSchema,
)

Node = TypeVar("Node")
Judge = Callable[[AvroNode, AvroNode], str]
"""Why a reader does not read what a writer writes, or nothing."""
NONE_OF_PYTHON: Final = b"null"
"""What Python's clients send as the definition of STRING."""
REASON_LETTERS_MAX: Final = 300
"""Names in a reason may be as long as a definition."""
READS_OLD: Final = frozenset(
    {
        SchemaStrategy.BACKWARD,
        SchemaStrategy.BACKWARD_TRANSITIVE,
        SchemaStrategy.FULL,
        SchemaStrategy.FULL_TRANSITIVE,
    }
)
READ_BY_OLD: Final = frozenset(
    {
        SchemaStrategy.FORWARD,
        SchemaStrategy.FORWARD_TRANSITIVE,
        SchemaStrategy.FULL,
        SchemaStrategy.FULL_TRANSITIVE,
    }
)


def identity_of(schema: TopicSchema) -> str:
    """What two schemas share if they are the same: then they are one version. The definition is
    read once for this, and to tell whether it is one of its kind.
    """
    if schema.kind is SchemaKind.AUTO_CONSUME:
        raise IncompatibleSchema(f"Schema {schema.kind.name} is a client-side schema type")
    if schema.kind in DEFINED_IN_AVRO:
        digest = identity.identity_of(_avro_value(schema))
    elif schema.kind in OF_SERIALIZERS:
        digest = hashlib.sha256(_of_serializers().one_form(schema)).digest()
    else:
        check_valid(schema)
        form = key_value.written_form(schema) if schema.kind is SchemaKind.KEY_VALUE else ""
        digest = hashlib.sha256(schema.definition + form.encode(errors="replace")).digest()
    if schema.references:
        said = msgspec.json.encode(sorted(schema.references))
        digest = hashlib.sha256(digest + said).digest()
    return f"{schema.kind.name}-{digest.hex()}"


def check_valid(schema: TopicSchema) -> None:
    """Raise unless the definition is one of its kind."""
    kind, definition = schema.kind, schema.definition
    if kind in PARSED or kind is SchemaKind.AUTO_CONSUME:
        identity_of(schema)
    elif kind is SchemaKind.EXTERNAL:
        pass
    elif kind is SchemaKind.PROTOBUF_NATIVE:
        protobuf_native.root_message(definition)
    elif kind is SchemaKind.KEY_VALUE:
        for half in key_value.halves(schema):
            check_valid(half)
    elif kind is SchemaKind.STRING and definition == NONE_OF_PYTHON:
        pass
    elif kind not in WITHOUT and definition:
        raise IncompatibleSchema(f"a schema of kind {kind.name} has no definition")


def _avro_value(schema: TopicSchema) -> AvroNode:
    """A schema of values in Avro. A union is one for serializers only, who name its branches by
    references: the values of several types in one topic.
    """
    found = _avro(schema)
    if found.kind == "union" and schema.kind is SchemaKind.AVRO and not schema.references:
        raise IncompatibleSchema("Avro schema typed [UNION] is not supported")
    return found


def _avro(schema: TopicSchema) -> AvroNode:
    return parser.parse(schema.definition, (each.definition for each in schema.imports))


def check_follows(
    old: TopicSchema,
    new: TopicSchema,
    strategy: SchemaStrategy,
    *,
    by_itself: bool = True,
    judge: Judge = resolution.refusal,
) -> None:
    """Raise unless the new schema may be used beside the old one.

    With `by_itself` a schema may always follow itself; Pulsar does not ask that when it compares
    one with all versions.
    """
    if strategy is SchemaStrategy.ALWAYS_COMPATIBLE:
        return
    if old.kind is not new.kind:
        raise IncompatibleSchema(
            f"Incompatible schema: exists schema type {old.kind.name}, "
            f"new schema type {new.kind.name}"
        )
    if not by_itself or not _is_written_alike(old, new):
        _check(old, new, strategy, judge)


def _is_written_alike(old: TopicSchema, new: TopicSchema) -> bool:
    """Whether two schemas of one kind are the same, letter by letter."""
    if old.definition != new.definition or old.references != new.references:
        return False
    if new.kind is not SchemaKind.KEY_VALUE:
        return True
    return key_value.written_form(old) == key_value.written_form(new)


def _check(old: TopicSchema, new: TopicSchema, strategy: SchemaStrategy, judge: Judge) -> None:
    """Two schemas of one kind."""
    if strategy in (SchemaStrategy.ALWAYS_INCOMPATIBLE, SchemaStrategy.UNDEFINED):
        raise IncompatibleSchema(f"Schema compatibility strategy is {strategy}")
    if new.kind is SchemaKind.KEY_VALUE:
        for one, other in zip(key_value.halves(old), key_value.halves(new), strict=True):
            if one.kind is not other.kind:
                raise IncompatibleSchema(
                    f"Key schemas or Value schemas are different schema type: {one.kind.name} "
                    f"became {other.kind.name}"
                )
            _check(one, other, strategy, judge)
    elif new.kind is SchemaKind.PROTOBUF_NATIVE:
        names = [protobuf_native.root_message(each.definition) for each in (old, new)]
        if names[0] != names[1]:
            raise IncompatibleSchema(
                f"Protobuf root message change is not allowed under the '{strategy}' strategy. "
                f"Original message name: '{shown(names[0])}', "
                f"new message name: '{shown(names[1])}'."
            )
    elif new.kind in DEFINED_IN_AVRO:
        _check_both_ways(_avro(old), _avro(new), strategy, judge)
    elif new.kind in OF_SERIALIZERS:
        _check_both_ways(old, new, strategy, _of_serializers().incompatibility)


def _of_serializers() -> ModuleType:
    """Loaded when there is one of these: the start takes 10 ms less."""
    from magnetar.core.schema import serializer_kinds

    return serializer_kinds


def _check_both_ways(
    before: Node, after: Node, strategy: SchemaStrategy, judge: Callable[[Node, Node], str]
) -> None:
    if strategy in READS_OLD and (reason := judge(before, after)[:REASON_LETTERS_MAX]):
        raise IncompatibleSchema(
            f"Incompatible schema: under {strategy} its readers read older messages, but {reason}"
        )
    if strategy in READ_BY_OLD and (reason := judge(after, before)[:REASON_LETTERS_MAX]):
        raise IncompatibleSchema(
            f"Incompatible schema: under {strategy} older readers read its messages, but {reason}"
        )


def check_follows_strictly(
    old: TopicSchema, new: TopicSchema, strategy: SchemaStrategy, *, by_itself: bool = True
) -> None:
    """As `check_follows`, by Avro's stricter judge (`avro/compatibility.py`)."""
    check_follows(old, new, strategy, by_itself=by_itself, judge=compatibility.incompatibility)


def of_consumer(strategy: SchemaStrategy) -> tuple[SchemaStrategy, bool]:
    """How the schema of a consumer is compared: by which strategy, and whether with all versions.

    A consumer reads, so what matters to most strategies is that it reads the latest version.
    """
    if strategy in (
        SchemaStrategy.BACKWARD,
        SchemaStrategy.FORWARD,
        SchemaStrategy.FORWARD_TRANSITIVE,
        SchemaStrategy.FULL,
    ):
        return SchemaStrategy.BACKWARD, False
    return strategy, True
