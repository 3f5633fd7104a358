"""A schema of a topic's messages, as its users declare it. Pure.

A schema is a kind, a definition in that kind's own language, and properties that clients set and
read. Messages are not looked at: a schema says how clients read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec
from msgspec import Struct

NO_PROPERTIES: Final[Mapping[str, str]] = {}


class SchemaKind(IntEnum):
    """What a definition is written in; names and numbers of Pulsar's `SchemaType.java`."""

    BYTES = -1
    """No schema: bytes as they are. It is not stored."""
    NONE = 0
    """As BYTES, in older clients."""
    STRING = 1
    JSON = 2
    """The values are JSON; the definition is Avro's."""
    PROTOBUF = 3
    """The values are protobuf's; the definition is Avro's."""
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    """Two schemas, of key and of value."""
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    """The definition is protobuf's own descriptor."""
    AUTO_CONSUME = 21
    """Whatever the topic has: of clients only."""
    EXTERNAL = 22
    """Known to another registry."""
    JSON_SCHEMA = 1_001
    """The values are JSON; the definition is in JSON Schema. Of serializers beside Kafka only."""
    PROTOBUF_TEXT = 1_002
    """The definition is in protobuf's language. Of serializers only, too."""

    @property
    def shown(self) -> SchemaKind:
        """What clients of topics are told that it is."""
        return SchemaKind.EXTERNAL if self in OF_SERIALIZERS else self


DEFINED_IN_AVRO: Final = frozenset({SchemaKind.AVRO, SchemaKind.JSON, SchemaKind.PROTOBUF})
OF_SERIALIZERS: Final = frozenset({SchemaKind.JSON_SCHEMA, SchemaKind.PROTOBUF_TEXT})
"""Kinds that Pulsar's clients do not know."""
PARSED: Final = DEFINED_IN_AVRO | OF_SERIALIZERS
"""Kinds whose definitions are texts in a language, which take time to read."""
WITHOUT: Final = frozenset({SchemaKind.BYTES, SchemaKind.NONE})
"""Kinds that mean that there is no schema."""


class SchemaReference(Struct, frozen=True, order=True):
    """What a schema of serializers calls another one that it needs, and which one that is."""

    name: str
    """A type of Avro, what a `$ref` says, or the file of an `import`."""
    subject: str
    version: int
    """Counted from 1, as serializers do."""


class ImportedSchema(Struct, frozen=True):
    """The definition that a reference leads to, under its name."""

    name: str
    definition: bytes


class TopicSchema(Struct, frozen=True):
    """See the module's docstring."""

    kind: SchemaKind
    definition: bytes = b""
    properties: Mapping[str, str] = NO_PROPERTIES
    references: tuple[SchemaReference, ...] = ()
    """Of serializers only."""
    imports: tuple[ImportedSchema, ...] = ()
    """What these lead to, each behind what it needs itself (`references.py`). Not stored."""

    @property
    def size(self) -> int:
        """Its bytes in storage, but for what is not its author's."""
        size = len(self.definition) + len(msgspec.json.encode(self.properties))
        return size + len(msgspec.json.encode(self.references)) if self.references else size

    @property
    def read_size(self) -> int:
        """The bytes of all definitions that are read to understand it."""
        return len(self.definition) + sum(len(each.definition) for each in self.imports)

    @property
    def digest(self) -> bytes:
        """Of everything that decides what it is but its kind."""
        found = hashlib.sha256(self.definition)
        if self.references:
            found.update(b"\n" + msgspec.json.encode(self.references))
        return found.digest()

    @property
    def shown_kind(self) -> SchemaKind:
        """What clients of topics are told that it is: they have no references."""
        return SchemaKind.EXTERNAL if self.references else self.kind.shown
