"""JSON as Java's programs read it."""

from typing import Any

import pytest
from msgspec import Struct

from magnetar.core.policy.java_values import fields_of, fraction, truth, whole


class Record(Struct, rename="camel"):
    one_number: int = 7
    a_text: str = ""


def test_fields_that_are_known() -> None:
    assert fields_of({"oneNumber": "5", "other": 1, "aText": 3}, Record) == {
        "oneNumber": 5,
        "aText": 3,
    }
    assert fields_of([1], Record) == [1]


@pytest.mark.parametrize(
    ("sent", "read"),
    [(5, 5), (" -5", -5), ("+5", 5), (5.9, 5), (-5.9, -5), (None, 0), ("", 0), (" ", 0),
     ("null", 0), ("1.5", "1.5"), ("0x1", "0x1"), ([], [])],
)  # fmt: skip
def test_whole_numbers(sent: Any, read: Any) -> None:
    assert whole(sent) == read


@pytest.mark.parametrize(
    ("sent", "read"),
    [(5, 5), (1.5, 1.5), (" 1.5 ", 1.5), (None, 0.0), ("", 0.0), ("x", "x"), ([], [])],
)
def test_fractions(sent: Any, read: Any) -> None:
    assert fraction(sent) == read


@pytest.mark.parametrize(
    ("sent", "read"),
    [(True, True), (" True ", True), ("TRUE", True), ("false", False), (0, False), (-1, True),
     (None, False), ("null", False), ("1", "1"), (1.0, 1.0), ("yes", "yes")],
)  # fmt: skip
def test_booleans(sent: Any, read: Any) -> None:
    found = truth(sent)
    assert (type(found), found) == (type(read), read)
