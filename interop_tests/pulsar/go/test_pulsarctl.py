"""Each verb of `pulsarctl` against the table of docs/admin.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import jwt
import pytest

from interop_tests.pulsar import pulsarctl_verbs
from interop_tests.pulsar.pulsarctl import Pulsarctl
from interop_tests.pulsar.pulsarctl_verbs import ARRIVING, LEAVING, TENANT, N, T, policies
from interop_tests.pulsar.verb_table import documented, names, tried
from magnetar import Standalone

heavy = pytest.mark.heavy
TABLE: Final = documented("pulsarctl")
SCHEMA: Final = {
    "type": "AVRO",
    "schema": '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}',
    "properties": {},
}
OBSERVED: Final = (
    "clusters",
    "clusters/standalone",
    "clusters/standalone/peers",
    "tenants",
    "brokers/configuration/values",
    "brokers/configuration/runtime",
    f"namespaces/{N}",
    f"persistent/{N}",
    f"persistent/{N}/t/subscriptions",
    f"persistent/{N}/t/internalStats",
)
"""What a verb that is refused could have changed, as paths of the administration."""


def all_lines() -> Iterator[str]:
    yield from (*ARRIVING, *pulsarctl_verbs.commands(), *pulsarctl_verbs.bookkeeper())
    for policy in policies(TABLE):
        yield from filter(None, policy)
    yield from LEAVING


def test_the_table_has_what_is_tried() -> None:
    assert tried(all_lines(), TABLE) == names(TABLE)


@pytest.fixture
def ctl(server: Standalone, tmp_path: Path) -> Pulsarctl:
    return Pulsarctl(tmp_path, server.http_url)


@heavy
def test_the_table_has_what_there_is(ctl: Pulsarctl) -> None:
    assert ctl.commands() == names(TABLE) | pulsarctl_verbs.OUTSIDE


@pytest.fixture
def admin(server: Standalone) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.http_url}/admin/v2/") as made:
        yield made


@pytest.fixture
def space(
    ctl: Pulsarctl, admin: httpx.Client, server: Standalone, client: Any, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """A namespace whose topic has messages; what fills the gaps of the command lines."""
    for line in ARRIVING:
        assert ctl.run(line).succeeded, line
    producer = client.create_producer(T)
    sent = [producer.send(b"value", partition_key=f"k{number % 2}") for number in range(5)]
    producer.close()
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "file.jar").write_bytes(b"PK")
    yield {
        "{folder}": str(tmp_path),
        "{schema}": str(tmp_path / "schema.json"),
        "{file}": str(tmp_path / "file.jar"),
        "{ledger}": str(sent[0].ledger_id()),
        "{broker}": server.http_url.removeprefix("http://"),
        "{token}": jwt.encode({"sub": "me"}, "x" * 32, "HS256"),
    }
    for path in (f"namespaces/{N}", f"tenants/{TENANT}"):
        admin.delete(path, params={"force": "true"})


@heavy
@pytest.mark.timeout(300)
def test_each_verb(ctl: Pulsarctl, admin: httpx.Client, space: dict[str, str]) -> None:
    def observe() -> dict[str, Any]:
        return {path: admin.get(path).raise_for_status().json() for path in OBSERVED}

    ctl.check((*pulsarctl_verbs.commands(), *LEAVING), TABLE, space, observe)


@heavy
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("space")
def test_policies_are_shown_and_removed(ctl: Pulsarctl) -> None:
    """Those that are only kept, too."""
    failed = []
    for policy in policies(TABLE):
        before, done, after = ctl.run(policy.show), ctl.run(policy.set), ctl.run(policy.show)
        if not (before.succeeded and done.succeeded and after.succeeded) or before == after:
            failed.append((policy.set, before, done, after))
        if policy.remove is not None:
            done, after = ctl.run(policy.remove), ctl.run(policy.show)
            if not done.succeeded or before != after:
                failed.append((policy.remove, before, done, after))
    assert failed == [], "\n".join(map(str, failed))
