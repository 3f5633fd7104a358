"""Finds the tests that name a statement in their docstring or in a comment.

    [MQTT-3.1.0-1]             the statement of 5.0
    [MQTT-3.1.0-1 of 3.1.1]    the statement of 3.1.1
    [MQTT-3.1.0-1 of both]     two statements with one number and one meaning

A test's text begins with its first decorator, so that comments within parameters count. Invariant:
what looks like a statement and is none raises `NoStatement`, so that a slip is not overlooked.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from interop_tests.mqtt.statements.catalogue import Statement, Version, statements

FOLDERS: Final = ("core", "wire", "interop_tests")
OWN_TESTS: Final = "interop_tests/mqtt/statements/"
"""Tests of this module, which have statements as examples."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRACKET: Final = re.compile(r"\[MQTT\b[^\]]*\](?: of [\d.]+)?")
_CITATION: Final = re.compile(r"\[MQTT-([\d.]+-\d+)(?: of (3\.1\.1|both))?\]")
_VERSIONS: Final[Mapping[str | None, tuple[Version, ...]]] = {
    None: (Version.V5,),
    "3.1.1": (Version.V3_1_1,),
    "both": (Version.V5, Version.V3_1_1),
}


class NoStatement(Exception):
    """A test names a statement that does not exist, or in another form than the three."""


def citations(root: Path) -> Mapping[Statement, Sequence[str]]:
    """The tests of the checkout by the statements that they name, as `file::name`."""
    found: dict[Statement, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("test_*.py")):
            file = path.relative_to(root).as_posix()
            if file.startswith(OWN_TESTS):
                continue
            for name, cited in cited_in(path.read_text(encoding="utf-8"), file):
                if name not in found[cited]:
                    found[cited].append(name)
    return found


def cited_in(source: str, file: str) -> Iterator[tuple[str, Statement]]:
    """Each test of a module with each statement that it names."""
    if "[MQTT" not in source:
        return
    lines = source.splitlines()
    for name, test in _tests(ast.parse(source).body):
        first = min([test.lineno, *(each.lineno for each in test.decorator_list)])
        for cited in _cited("\n".join(lines[first - 1 : test.end_lineno]), file):
            yield f"{file}::{name}", cited


def _tests(body: Sequence[ast.stmt]) -> Iterator[tuple[str, _Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}::{name}", test) for name, test in _tests(node.body))
        elif isinstance(node, _Function) and node.name.startswith("test_"):
            yield node.name, node


def _cited(text: str, file: str) -> Iterator[Statement]:
    for bracket in _BRACKET.findall(text):
        match = _CITATION.fullmatch(bracket)
        if match is None:
            raise NoStatement(f"{file}: {bracket}")
        for version in _VERSIONS[match[2]]:
            statement = statements(version).get(match[1])
            if statement is None:
                raise NoStatement(f"{file}: {bracket} is not in the list of {version}")
            yield statement
