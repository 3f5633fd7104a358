"""The list of statements is whole, tests name what is in it, and the page shows both."""

from __future__ import annotations

import pytest

from interop_tests.mqtt.statements.catalogue import Concern, Statement, Version, statements
from interop_tests.mqtt.statements.citations import NoStatement, citations, cited_in
from interop_tests.mqtt.statements.page import FILE, ROOT, missing, page

V5, V3 = Version.V5, Version.V3_1_1
SAMPLE = '''
@pytest.mark.parametrize("data", [b"", b"x"])  # [MQTT-3.1.0-1 of both]
def test_one(data):
    """[MQTT-1.5.3-1 of 3.1.1], and [MQTT-1.5.4-1]"""

def helper():
    """[MQTT-3.1.0-2]"""

class TestGroup:
    async def test_two(self):
        assert True  # [MQTT-3.1.0-2]
'''


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / FILE).read_text(encoding="utf-8")
    assert written == page(citations(ROOT)), "run `make docs`"


@pytest.mark.parametrize(("version", "count"), [(V5, 251), (V3, 141)])
def test_all_statements_are_listed_in_order(version: Version, count: int) -> None:
    """As many as the specification has; within a section the numbers have no gaps."""
    numbers = list(statements(version))
    keys = [[int(part) for part in number.replace("-", ".").split(".")] for number in numbers]
    assert len(keys) == count
    assert keys == sorted(keys)
    gaps = {
        number
        for number, before, key in zip(numbers, [[0], *keys], keys, strict=False)
        if key[-1] != (before[-1] + 1 if before[:-1] == key[:-1] else 1)
    }
    assert gaps == ({"2.2.1-2"} if version is V5 else set()), "5.0 has no 2.2.1-1"


@pytest.mark.parametrize("version", Version)
def test_summaries_are_short(version: Version) -> None:
    for each in statements(version).values():
        assert 0 < len(each.summary) <= 100
        assert "|" not in each.summary, "it stands in a table"


def test_a_number_of_both_versions_is_not_one_statement() -> None:
    assert statements(V5)["3.1.2-22"].summary != statements(V3)["3.1.2-22"].summary


def test_tests_that_name_statements_are_found() -> None:
    found = [(name, each.version, each.number) for name, each in cited_in(SAMPLE, "a.py")]
    assert found == [
        ("a.py::test_one", V5, "3.1.0-1"),
        ("a.py::test_one", V3, "3.1.0-1"),
        ("a.py::test_one", V3, "1.5.3-1"),
        ("a.py::test_one", V5, "1.5.4-1"),
        ("a.py::TestGroup::test_two", V5, "3.1.0-2"),
    ]


@pytest.mark.parametrize(
    "bracket",
    [
        "[MQTT-9.9.9-1]",
        "[MQTT-1.5.3-1]",  # is of 3.1.1
        "[MQTT-1.5.4-1 of both]",  # is of 5.0
        "[MQTT-3.1.0-1] of 3.1.1",
        "[MQTT-1.5.4-1, -2]",
        "[MQTT 3.1.0-1]",
        "[MQTT-3-8.3-4 of 3.1.1]",
    ],
)
def test_a_slip_is_refused(bracket: str) -> None:
    with pytest.raises(NoStatement, match=r"a\.py"):
        list(cited_in(f"def test_one():\n    pass  # {bracket}", "a.py"))


@pytest.mark.parametrize("version", Version)
def test_none_is_missing(version: Version) -> None:
    """Each statement that concerns a server has a test that names it."""
    assert [each.number for each in missing(version, citations(ROOT))] == []


def test_a_statement_is_missing_if_it_concerns_a_server_and_no_test_names_it() -> None:
    first, second = statements(V3)["3.1.2-2"], statements(V3)["3.1.2-23"]
    assert (first.concerns, second.concerns) == (Concern.SERVER, Concern.CLIENT)
    untested = missing(V3, {})
    assert first in untested
    assert second not in untested
    tests: dict[Statement, list[str]] = {first: ["a.py::test_one", "a.py::test_two"]}
    assert first not in missing(V3, tests)
    row = f"| 3.1.2-2 | 3.1.1 | {first.summary} | server | `a.py::test_one`<br>`a.py::test_two` |"
    assert row in page(tests).splitlines()
