"""Each verb of `pulsar-admin` against the table of docs/admin.md, in one JVM."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Final

import httpx
import pulsar
import pytest

from interop_tests.pulsar import verbs
from interop_tests.pulsar.test_admin_cli import Admin, admin, jars
from interop_tests.pulsar.verb_table import Verb, documented, filled, names, parted, tried
from interop_tests.raw import Raw
from magnetar.wire.pulsar.tests import peer

__all__ = ["admin", "jars"]

pytestmark = [pytest.mark.java, pytest.mark.slow]

TABLE: Final = documented("pulsar-admin")
OUTSIDE: Final = {"documents"}
"""Groups that ask no server."""
STATUS_ONLY: Final = "packages download"
"""Its client shows the status of a refusal, and not the reason."""
SCHEMA: Final = {"type": "STRING", "schema": "", "properties": {}}


def listed(usage: str) -> set[str]:
    """The verbs of a group, or the groups, as a usage lists them."""
    lines = usage.partition("Commands:")[2].splitlines()
    return {found[1] for line in lines if (found := re.match(r"  ([a-zA-Z][\w-]*)(?:,| |$)", line))}


def test_the_table_has_what_is_tried() -> None:
    untried = [f"{group} {verb}" for group, some in verbs.UNTRIED.items() for verb in some]
    assert tried((*untried, *verbs.commands(), *verbs.ALONE), TABLE) == names(TABLE)


def expected_of(line: str) -> Verb:
    group, verb = parted(line, TABLE)
    return TABLE[group][verb]


def as_documented(line: str, said: str) -> bool:
    expected = expected_of(line)
    if expected.state != "refused":
        return "Reason:" not in said
    return "Reason:" in said and (expected.reason in said or line.startswith(STATUS_ONLY))


def test_each_verb(admin: Admin, tmp_path: Path) -> None:
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
    lines = [filled(line, fillers) for line in verbs.commands()]
    refused = [line for line in lines if expected_of(line).state == "refused"]
    helps = ["--help", *(f"{group} --help" for group in TABLE)]
    script = [*helps, *verbs.OBSERVING, *refused, *verbs.OBSERVING, *lines]
    said = iter(admin.shell(script, tmp_path / "script"))
    shown, before, refusals, after, outcomes = (
        list(islice(said, len(part)))
        for part in (helps, verbs.OBSERVING, refused, verbs.OBSERVING, lines)
    )
    assert next(said, None) is None
    groups, *usages = map(listed, shown)
    assert groups == set(TABLE) | OUTSIDE
    assert dict(zip(TABLE, usages, strict=True)) == names(TABLE)
    wrong = [
        (line, said)
        for line, said in zip((*refused, *lines), (*refusals, *outcomes), strict=True)
        if "Usage:" in said or not as_documented(line, said)
    ]
    assert not wrong, "\n".join(map(str, wrong))
    assert len(refused) > 50
    assert not [each for each in before if "Usage:" in each]
    assert dict(zip(verbs.OBSERVING, before, strict=True)) == dict(
        zip(verbs.OBSERVING, after, strict=True)
    ), "a verb that is refused has changed something"


@pytest.mark.parametrize("line", verbs.ALONE[1:])
def test_a_verb_that_is_run_alone(admin: Admin, line: str) -> None:
    group, verb = parted(line, TABLE)
    assert TABLE[group][verb].state == "works"
    admin.says(line)
