"""Filters as sets, compared with what they match."""

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st

from magnetar.wire.mqtt.matching.filter_sets import covers, overlap
from magnetar.wire.mqtt.topics import matches

LEVELS = st.sampled_from(["a", "b", "$s", "+", ""])
NAMES = [
    "/".join(levels)
    for count in range(1, 5)
    for levels in itertools.product(("a", "b", "c", "$s", ""), repeat=count)
    if levels != ("",)
]
"""All names of some levels: two filters of fewer that are not the same differ by one of these."""


@st.composite
def filters(draw):
    levels = draw(st.lists(LEVELS, min_size=1, max_size=2))
    if draw(st.booleans()):
        levels.append("#")
    return "/".join(levels) or "#"


@given(filters(), filters())
def test_covers_is_about_the_topics_that_match(one, other):
    matched = [name for name in NAMES if matches(other, name)]
    assume(matched)
    assert covers(one, other) == all(matches(one, name) for name in matched)


@given(filters(), filters())
def test_overlap_is_about_a_topic_that_both_match(one, other):
    assert overlap(one, other) == any(matches(one, name) and matches(other, name) for name in NAMES)


def test_examples():
    assert covers("a/#", "a")
    assert covers("a/+", "a/b")
    assert not covers("a/+", "a/#")
    assert not covers("#", "$SYS/#")
    assert covers("$SYS/#", "$SYS/broker/+")
    assert overlap("a/#", "+")
    assert not overlap("a/b/#", "a")
    assert overlap("+/x", "a/#")
    assert not overlap("+", "$SYS")
