"""The kinds of serializers, through one door; `test_verdicts` asks for them as registries do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema import serializer_kinds
from magnetar.core.schema.schema import OF_SERIALIZERS, SchemaKind, TopicSchema

WHOLE, NUMBER = (
    TopicSchema(SchemaKind.JSON_SCHEMA, b'{"type": "%b"}' % kind)
    for kind in (b"integer", b"number")
)
ONE, OTHER = (
    TopicSchema(SchemaKind.PROTOBUF_TEXT, b'syntax = "proto3"; message M { %b a = 1; }' % kind)
    for kind in (b"int32", b"string")
)


@pytest.mark.parametrize(("old", "new"), [(NUMBER, WHOLE), (ONE, OTHER)])
def test_each_kind_is_judged_by_its_own_rules(old: TopicSchema, new: TopicSchema) -> None:
    assert serializer_kinds.incompatibility(old, new)
    assert serializer_kinds.incompatibility(old, old) == ""
    assert serializer_kinds.one_form(old) != serializer_kinds.one_form(new)


@pytest.mark.parametrize("kind", sorted(OF_SERIALIZERS))
def test_what_is_none_is_refused(kind: SchemaKind) -> None:
    with pytest.raises(IncompatibleSchema):
        serializer_kinds.one_form(TopicSchema(kind, b"{"))


def test_a_file_without_types_is_refused() -> None:
    """One with enums only may be imported by others."""
    enum = b'syntax = "proto3"; enum E { A = 0; }'
    serializer_kinds.one_form(TopicSchema(SchemaKind.PROTOBUF_TEXT, enum))
    with pytest.raises(IncompatibleSchema, match="no types"):
        serializer_kinds.one_form(TopicSchema(SchemaKind.PROTOBUF_TEXT, b'syntax = "proto3";'))


def test_they_are_not_loaded_with_the_verdicts() -> None:
    ask = "import sys, magnetar.core.schema.verdicts; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert "magnetar.core.schema.serializer_kinds" not in done.stdout.split()
