"""Headers become properties and come back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.entry.pulsar.properties import ALL, headers_of, properties_of
from magnetar.core.entry.record import Header

names = st.text(max_size=5).map(str.encode)
anything = st.lists(st.tuples(names, st.none() | st.binary(max_size=9)), max_size=5)


@given(anything)
def test_there_and_back(headers: list[Header]) -> None:
    assert list(headers_of(properties_of(headers))) == headers


@given(anything)
def test_properties_are_text_and_each_name_is_there_once(headers: list[Header]) -> None:
    found = properties_of(headers)
    assert len(dict(found)) == len(found)
    for name, value in found:
        name.decode()
        value.decode()


def test_text_stays_as_it_is() -> None:
    headers = [(b"a", b"1"), ("\u00fc".encode(), "\u20ac".encode()), (b"empty", b"")]
    assert properties_of(headers) == headers


@pytest.mark.parametrize(
    ("headers", "plain"),
    [
        ([(b"n", None)], {}),
        ([(b"b", b"\xff\xfe")], {"b": "//4="}),
        ([(b"a", b"1"), (b"a", b"2")], {"a": "2"}),
    ],
)
def test_what_properties_cannot_say(headers: list[Header], plain: dict[str, str]) -> None:
    found = {name.decode(): value.decode() for name, value in properties_of(headers)}
    said = json.loads(found.pop(ALL.decode()))
    assert found == plain
    assert [name for name, _ in said] == [name.decode() for name, _ in headers]


@pytest.mark.parametrize("said", [b"not json", b'[["\xff", null]]', b'[["\\ud800", null]]'])
def test_a_property_of_that_name_from_somebody_else(said: bytes) -> None:
    theirs = [(b"a", b"1"), (ALL, said)]
    assert headers_of(theirs) == theirs
