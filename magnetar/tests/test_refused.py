"""docs/pulsar.md lists what this server refuses, as the code says it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective
from magnetar.wire.pulsar import commands
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.events import ALL
from magnetar.wire.pulsar.session.transactions.transact import HANDLERS, CoordinatorHandlers

ROOT: Final = Path(__file__).parents[2]
SECTION: Final = "## What is refused, and why"
REFUSING: Final = {"not_here", "NotHere", "_refuses"}
"""The functions and classes of `wire/http` whose argument is the reason of a 405."""
NOT_IN_A_SERVER: Final = {"messages are not shown by this server"}
"""Reasons that no composed server has, as it has what they miss."""
SCALABLE: Final = range(70, 82)
UNSENT: Final = {"TOPIC_MIGRATED"}
"""Commands of brokers that this server never sends."""


def section() -> str:
    page = (ROOT / "docs" / "pulsar.md").read_text(encoding="utf-8")
    return page.partition(SECTION)[2].partition("\n## ")[0]


def rows(heading: str) -> list[list[str]]:
    """The rows of the section's table with that heading."""
    table = section().partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()[2:]  # behind the rest of the heading, and its rule
    ]


def reasons(file: Path) -> Iterator[str]:
    """What is said in a file to those who ask for what there is not."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            (first, *_) = node.args or [None]
            if node.func.id in REFUSING and isinstance(first, ast.Constant):
                assert isinstance(first.value, str)
                yield first.value


def test_the_reasons_of_the_admin_api() -> None:
    files = [file for file in (ROOT / "wire/http/admin").rglob("*.py") if "tests" not in file.parts]
    said = {reason for file in files for reason in reasons(file)}
    assert {row[1] for row in rows("what")} == said - NOT_IN_A_SERVER


def test_the_migration_copies_each_policy_of_topics_that_has_an_effect() -> None:
    page = (ROOT / "docs" / "pulsar.md").read_text(encoding="utf-8")
    copied = set(page.partition('POLICIES = """')[2].partition('"""')[0].split())
    policies = levels_of(Effective).at("topic")
    with_effect = [scope.paths for policy, scope in policies if not policy.reason and scope.paths]
    assert with_effect
    assert [paths for paths in with_effect if copied.isdisjoint(paths)] == []


def test_the_commands_of_the_binary_protocol() -> None:
    refused = {
        kind
        for kind, handler in HANDLERS.items()
        if handler is CoordinatorHandlers.on_end_elsewhere
    }
    assert refused <= set(ALL)
    named = set(re.findall(r"`([A-Z_]+)`", rows("command of the binary protocol")[0][0]))
    assert len(named) == len(refused)
    assert {name.replace("_", "").lower() for name in named} == {
        kind.__name__.lower() for kind in refused
    }
    known = {kind.number for kind in pb.BaseCommand.Type.DESCRIPTOR.values}
    assert not known & set(SCALABLE)
    sent_by_brokers = {pb.BaseCommand.Type.Name(kind) for kind in known - set(commands.DECODERS)}
    assert sent_by_brokers >= {"MESSAGE", "SEND_RECEIPT", *UNSENT}
    for name in UNSENT:
        assert f"`{name}`" in section()
