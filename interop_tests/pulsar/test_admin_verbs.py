"""Each verb of `pulsar-admin` against the table of docs/admin.md, in one JVM."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import httpx
import pulsar
import pytest

from interop_tests.pulsar import verbs
from interop_tests.pulsar.test_admin_cli import Admin, admin, jars
from interop_tests.raw import Raw
from magnetar.wire.pulsar.tests import peer

__all__ = ["admin", "jars"]

pytestmark = [pytest.mark.java, pytest.mark.slow]

TABLE: Final = Path(__file__).parents[2] / "docs" / "admin.md"
STATES: Final = {"works", "kept", "refused"}
SCHEMA: Final = {"type": "STRING", "schema": "", "properties": {}}


def documented() -> dict[str, dict[str, str]]:
    """What the table says of each verb, by group."""
    found: dict[str, dict[str, str]] = {}
    part = TABLE.read_text().partition("<!-- verbs: begin -->")[2]
    for line in part.partition("<!-- verbs: end -->")[0].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 4 or cells[2] not in STATES:
            continue
        group = found.setdefault(cells[0].strip("`"), {})
        for written in re.findall(r"`([^`]+)`", cells[1]):
            for verb in _expanded(written):
                assert verb not in group, f"{verb} is there twice"
                group[verb] = cells[2]
    return found


def _expanded(written: str) -> list[str]:
    """`{get,set}-x` is two verbs."""
    braces = re.fullmatch(r"\{([^}]+)\}(.*)", written)
    return [written] if braces is None else [each + braces[2] for each in braces[1].split(",")]


def listed(usage: str) -> set[str]:
    """The verbs of a group, as its usage lists them."""
    lines = usage.partition("Commands:")[2].splitlines()
    return {found[1] for line in lines if (found := re.match(r"  ([a-zA-Z][\w-]*)(?:,| |$)", line))}


def test_the_table_has_what_is_tried() -> None:
    tried: dict[str, set[str]] = {group: set(some) for group, some in verbs.UNTRIED.items()}
    for line in (*verbs.commands(), *verbs.ALONE):
        group, verb = line.split()[:2]
        tried.setdefault(group, set()).add(verb)
    assert tried == {group: set(some) for group, some in documented().items()}


def test_each_verb(admin: Admin, tmp_path: Path) -> None:
    table = documented()
    space = f"{admin.server.http_url}/admin/v2/namespaces/{verbs.N}"
    assert httpx.put(space).status_code == 204
    client = pulsar.Client(
        admin.server.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    producer = client.create_producer(verbs.T)
    sent = [producer.send(b"x") for _ in range(3)]
    client.close()
    with Raw(admin.server).introduce() as peer_of_coordinator:
        begun = peer_of_coordinator.ask(peer.new_txn(1, ttl_ms=600_000)).body
        txn = begun.txnid_most_bits, begun.txnid_least_bits
        added = peer_of_coordinator.ask(peer.add_partitions(2, txn, verbs.T))
    assert (txn[0], added.body.error) == (0, 0)
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    fillers = {
        "{schema}": str(schema),
        "{ledger}": str(sent[0].ledger_id()),
        "{least}": str(txn[1]),
        "{state}": '{"key":"k","stringValue":"v"}',
    }
    lines = list(verbs.commands())
    for name, value in fillers.items():
        lines = [line.replace(name, value) for line in lines]
    shown = admin.shell([*(f"{group} --help" for group in table), *lines], tmp_path / "script")
    for (group, expected), usage in zip(table.items(), shown, strict=False):
        assert listed(usage) == set(expected), group
    wrong = []
    for line, said in zip(lines, shown[len(table) :], strict=True):
        group, verb = line.split()[:2]
        refused = "Reason:" in said
        if "Usage:" in said or refused is not (table[group][verb] == "refused"):
            wrong.append((line, table[group][verb], said))
    assert not wrong


@pytest.mark.parametrize("line", verbs.ALONE[1:])
def test_a_verb_that_is_run_alone(admin: Admin, line: str) -> None:
    group, verb = line.split()
    assert documented()[group][verb] == "works"
    admin.says(line)
