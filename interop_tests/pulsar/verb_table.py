"""The tables of docs/admin.md that say what each verb of a command line does here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parents[2] / "docs" / "admin.md"
STATES: Final = {"works", "kept", "refused"}


class Verb(NamedTuple):
    state: str
    reason: str
    """A remark if it works; if it is refused, the words in which the server says why."""


Table = dict[str, dict[str, Verb]]
"""Verbs by their group, which is more than one word for `pulsarctl bookkeeper bookie`."""


def documented(tool: str) -> Table:
    """What the table of a tool says."""
    found: Table = {}
    part = PAGE.read_text(encoding="utf-8").partition(f"<!-- {tool}: begin -->")[2]
    for line in part.partition(f"<!-- {tool}: end -->")[0].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 4 or cells[2] not in STATES:
            continue
        assert cells[3] or cells[2] != "refused", f"why are these refused? {line}"
        group = found.setdefault(cells[0].strip("`"), {})
        for written in re.findall(r"`([^`]+)`", cells[1]):
            for verb in _expanded(written):
                assert verb not in group, f"{verb} is there twice"
                group[verb] = Verb(cells[2], cells[3])
    return found


def _expanded(written: str) -> list[str]:
    """`{get,set}-x` is two verbs."""
    braces = re.fullmatch(r"\{([^}]+)\}(.*)", written)
    return [written] if braces is None else [each + braces[2] for each in braces[1].split(",")]


def names(table: Table) -> dict[str, set[str]]:
    """Only which verbs there are."""
    return {group: set(verbs) for group, verbs in table.items()}


def parted(line: str, table: Table) -> tuple[str, str]:
    """The group and the verb of a command line."""
    words = line.split()
    size = 2 if " ".join(words[:2]) in table else 1
    return " ".join(words[:size]), words[size]


def tried(lines: Iterable[str], table: Table) -> dict[str, set[str]]:
    """Which verbs those command lines are of."""
    found: dict[str, set[str]] = {}
    for line in lines:
        group, verb = parted(line, table)
        found.setdefault(group, set()).add(verb)
    return found


def filled(line: str, fillers: Mapping[str, str]) -> str:
    """A command line whose gaps are filled."""
    for gap, filler in fillers.items():
        line = line.replace(gap, filler)
    return line
