"""What is read from a declaration."""

from typing import Annotated

import msgspec
import pytest

from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import (
    LATEST,
    Bytes,
    Field,
    FieldType,
    Int32,
    Message,
    String,
    fields_of,
    nullable,
    since,
    tagged,
    until,
)


class Part(Message):
    number: Int32


class Whole(Message):
    size: Annotated[Int32, since(2), until(5)] = -1
    name: Annotated[String | None, nullable(3)]
    parts: list[Part]
    words: Annotated[list[String] | None, since(1)] = None
    blob: Annotated[Bytes | None, since(4), tagged(0)] = None


INT32 = FieldType("int32", "i")
STRING = FieldType("string")
BYTES = FieldType("bytes")


def field(name, kind, **given):
    usual = {
        "array": False,
        "since": 0,
        "until": LATEST,
        "null_since": None,
        "tag": None,
        "default": msgspec.NODEFAULT,
    }
    return Field(name=name, kind=kind, **(usual | given))


def test_fields_come_in_the_order_of_the_wire_and_with_all_that_is_said_of_them():
    assert fields_of(Whole) == (
        field("size", INT32, since=2, until=5, default=-1),
        field("name", STRING, null_since=3),
        field("parts", Part, array=True),
        field("words", STRING, array=True, since=1, null_since=0, default=None),
        field("blob", BYTES, since=4, null_since=0, tag=0, default=None),
    )


def test_a_field_is_in_the_versions_that_it_names():
    size = fields_of(Whole)[0]
    assert [version for version in range(8) if size.is_in(version)] == [2, 3, 4, 5]


def test_a_field_may_be_null_only_where_it_says_so():
    size, name, _, words, _ = fields_of(Whole)
    assert not size.may_be_null(LATEST)
    assert [name.may_be_null(version) for version in (2, 3)] == [False, True]
    assert words.may_be_null(1)


def test_fields_are_given_by_name():
    with pytest.raises(TypeError):
        Part(3)
    assert Part(number=3) == Part(number=3)


def messages_in(message):
    yield message
    for each in fields_of(message):
        if not isinstance(each.kind, FieldType):
            yield from messages_in(each.kind)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_what_some_versions_lack_has_a_default(api):
    first, last = api.request.VERSIONS
    for side in api:
        for message in messages_in(side):
            for each in fields_of(message):
                lacking = each.since > first or each.until < last or each.tag is not None
                # Parts may be younger than their message: then their fields name no version.
                assert not lacking or each.default is not msgspec.NODEFAULT, each.name
