"""Patterns match what Python's own matcher says they match, and never take long."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.patterns.patterns import BadPattern, compiled

PIECES = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "\\.", "\\d", "\\w", "(a|b)", "(?:ab)", "^", "$", "a|b", "-"]
)
REPEATS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "{0}"])
PATTERNS = st.recursive(
    st.lists(st.tuples(PIECES, REPEATS), max_size=4).map(
        lambda parts: "".join(
            f"(?:{piece}){repeat}" if len(piece) > 1 else piece + repeat * (piece not in "^$")
            for piece, repeat in parts
        )
    ),
    lambda inner: st.tuples(inner, REPEATS).map(lambda two: f"({two[0]}){two[1]}"),
    max_leaves=3,
)


@given(PATTERNS, st.lists(st.text("ab.-1", max_size=8), max_size=5))
def test_as_python_says(pattern: str, names: list[str]) -> None:
    machine = compiled(pattern)
    for name in names:
        assert machine.matches(name) is (re.fullmatch(pattern, name) is not None), (pattern, name)


@given(st.text("ab.*+?{}()[]|^$\\,0123-:<>P=!", max_size=30), st.text("ab", max_size=5))
def test_anything_is_read_or_refused(pattern: str, name: str) -> None:
    with suppress(BadPattern):
        compiled(pattern).matches(name)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "[", "[a", "[b-a]", "*", "a**", "a{", "a{2,1}", "a{1001}", "a{x}", "\\"),
        *("(?=a)", "(?!a)", "(?<=a)", "(?i)a", "(a)\\1", "\\b", "\\pL", "[[:alpha:]]", "[\\D]"),
        *("(" * 60 + ")" * 60, "a" * 1001, "((a{100}){100}){100}", "(?P<n", "a{" + "9" * 900),
        *("a{1,\u00b2}", "a{\u00b2}", "a{1,\u0662}", "a{1,99999}"),
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compiled(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "a*a*a*a*a*a*a*b", "(.*a){20}b"])
def test_what_keeps_others_busy_for_hours(pattern: str) -> None:
    assert not compiled(pattern).matches("a" * 249)


def test_what_users_write() -> None:
    assert compiled("orders-.*").matches("orders-eu")
    assert not compiled("orders-.*").matches("my-orders-eu")
    assert compiled("^(orders|bills)[._-]v[0-9]+$").matches("bills_v12")
    assert compiled("(?P<kind>a|b)\\.x").matches("b.x")
    assert compiled("[a-c-]+").matches("a-b-c")
    assert compiled("[]a]+").matches("]a")


def test_quoted_letters_mean_themselves() -> None:
    assert compiled("\\Qa.b+\\E.*").matches("a.b+c")
    assert not compiled("\\Qa.b\\E").matches("axb")
    assert compiled("x\\Q(").matches("x(")
    assert compiled("\\Qab\\E+").matches("abbb")  # as RE2 reads it
    assert compiled("\\\\Q").matches("\\Q")
