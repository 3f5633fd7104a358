"""The source of a function, and the fields that it is written from."""

from typing import Annotated

from magnetar.wire.kafka.codec.declare import (
    NO_UUID,
    Int8,
    Int32,
    Message,
    String,
    Uuid,
    since,
    tagged,
)
from magnetar.wire.kafka.codec.source import (
    Source,
    codes,
    element_of,
    of_version,
    runs,
    size_code,
)


class Whole(Message):
    first: Int8
    second: Int32
    name: String
    names: list[String]
    last: Annotated[Int32, since(1)] = 0
    late: Annotated[Int32, tagged(1)] = 0
    early: Annotated[Uuid, tagged(0)] = NO_UUID


def names(fields):
    return [field.name for field in fields]


def test_plain_fields_and_tagged_ones_by_number():
    plain, tags = of_version(Whole, 0)
    assert names(plain) == ["first", "second", "name", "names"]
    assert names(tags) == ["early", "late"]


def test_neighbours_of_fixed_size_are_one_run():
    plain, _ = of_version(Whole, 1)
    assert [(fixed, names(run)) for fixed, run in runs(plain)] == [
        (True, ["first", "second"]),
        (False, ["name", "names"]),
        (True, ["last"]),
    ]
    assert codes(plain[:2]) == "bi"


def test_sizes_of_texts_are_short_and_all_others_long():
    plain, _ = of_version(Whole, 0)
    name, many = plain[2:4]
    assert (size_code(name), size_code(many), size_code(element_of(many))) == ("h", "i", "h")


def test_layouts_have_names_that_python_allows():
    source = Source(0, True)
    name, size = source.layout("16s?b", "unpack_from")
    assert (name.isidentifier(), size) == (True, 18)
    assert source.names[name](bytes(16) + b"\1\2") == (bytes(16), True, 2)


def test_a_source_becomes_a_function():
    source = Source(3, False)
    first, second = source.local("value"), source.local("value")
    source.add(0, f"def double({first}):")
    source.add(1, f"{second} = {first} * 2", f"return {second}")
    assert source.compiled("double")(4) == 8
