"""Writes docs/mqtt-statements.md: each statement, and the tests that name it.

`make docs` calls it; a test fails while the page is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from interop_tests.mqtt.statements.catalogue import Statement, Version, statements
from interop_tests.mqtt.statements.citations import citations

ROOT: Final = Path(__file__).parents[3]
FILE: Final = "mqtt-statements.md"
HEAD: Final = """\
<!-- written by `make docs`; do not edit -->
# Normative statements of MQTT

The specifications of MQTT number what implementations must do. This page lists all these statements
in our words, with the tests that name them; the numbers follow `MQTT-`. A statement concerns the
server if the server has to obey it, or to react when a client breaks it. Each of these has a test;
another test checks that none is missing. Statements that concern clients only need none here, nor
do those about what this server never does (neither).
"""

Tests = Mapping[Statement, Sequence[str]]


def page(tests: Tests) -> str:
    """The whole page, for tests by the statements that they name."""
    return "\n".join([HEAD, *_overview(), *_tables(tests)])


def missing(version: Version, tests: Tests) -> list[Statement]:
    """Statements that need a test and have none."""
    every = statements(version).values()
    return [each for each in every if each.needs_test and not tests.get(each)]


def _overview() -> Iterator[str]:
    yield "| version | statements | concern a server |"
    yield "|---|---|---|"
    for version in Version:
        every = statements(version).values()
        yield f"| {version} | {len(every)} | {sum(each.needs_test for each in every)} |"
    yield ""


def _tables(tests: Tests) -> Iterator[str]:
    for version in Version:
        yield f"## MQTT {version}"
        yield ""
        yield "| statement | version | summary | concerns | tests |"
        yield "|---|---|---|---|---|"
        for each in statements(version).values():
            names = "<br>".join(f"`{name}`" for name in tests.get(each, ()))
            yield f"| {each.number} | {version} | {each.summary} | {each.concerns} | {names} |"
        yield ""


def main() -> None:
    Path(sys.argv[1], FILE).write_text(page(citations(ROOT)), encoding="utf-8")


if __name__ == "__main__":
    main()
