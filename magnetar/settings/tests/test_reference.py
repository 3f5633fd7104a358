"""What users read about settings and commands is what there is."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from magnetar.cli.root import root
from magnetar.settings.reference import reference, with_part

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_up_to_date() -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert with_part(page, reference()) == page, "run `make docs`"
    assert reference() in page


def _commands(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{words} {name}")
        else:
            yield f"{words} {name}", command


COMMANDS = dict(_commands(root, "magnetar"))


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_and_flag_is_documented(words: str) -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert f"`{words}`" in pages
    assert COMMANDS[words].help
    for parameter in COMMANDS[words].params:
        for flag in parameter.opts:
            assert re.search(rf"`{flag}\b", pages), f"{words} {flag}"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(AssertionError, match="no begin mark"):
        with_part("# A page", "")
