"""An application moves from Apache Pulsar, and back, by the steps of docs/pulsar.md as written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pulsar
import pytest
from pulsar.schema import AvroSchema, Integer, Record, String

from bench.peers.pulsar import Pulsar
from magnetar import standalone

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

TEXT: Final = (Path(__file__).parents[2] / "docs/pulsar.md").read_text(encoding="utf-8")
SECTION: Final = TEXT.partition("## Moving an application")[2]
PROGRAMS: Final = dict(re.findall(r"```python\n# (\w+\.py): .*?\n(.*?)```", SECTION, re.S))
STEPS: Final = re.findall(r"```sh\n(.*?)```", SECTION, re.S)
PLACED: Final = "shop/orders/placed"
PAID: Final = "persistent://shop/orders/paid"
KINDS: Final = 5
RATE: Final = {"dispatchThrottlingRateInMsg": 5_000, "dispatchThrottlingRateInByte": -1}
DECIDED: Final[dict[str, Any]] = {
    "maxConsumers": 7,
    "deduplicationSnapshotInterval": 90,
    "persistence": {
        **{f"bookkeeper{size}": 1 for size in ("Ensemble", "WriteQuorum", "AckQuorum")},
        "managedLedgerMaxMarkDeleteRate": 2.0,
    },
    "schemaValidationEnforced": False,
    "billing/dispatchRate": {**RATE, "relativeToPublishRate": False, "ratePeriodInSecond": 1},
}
"""What a topic has decided by itself; its namespace enforces schemas."""
GROUP: Final = "resourcegroups/large%20ones"
Seen = tuple[Any, ...]


def order(*, noted: bool) -> type[Record]:
    """Two versions of one record."""

    class Order(Record):
        item = String()
        number = Integer()
        if noted:
            note = String(required_default=True)

    return Order


class Side:
    """One of the servers, as the application sees it."""

    def __init__(self, http_url: str, pulsar_url: str) -> None:
        self.urls = http_url, pulsar_url
        quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self.client = pulsar.Client(pulsar_url, logger=quiet)
        self.admin = httpx.Client(base_url=f"{http_url}/admin/v2", timeout=60)

    def close(self) -> None:
        self.client.close()
        self.admin.close()

    def put(self, path: str, body: Any = None) -> None:
        self.change("PUT", path, body)

    def change(self, method: str, path: str, body: Any) -> None:
        said = {} if body is None else {"json": body}
        answer = self.admin.request(method, path, **said)
        assert answer.is_success, (path, answer.text)

    def shown(self, path: str) -> Any:
        """What is at a path; None if that is nothing."""
        answer = self.admin.get(path)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    def publish(self, numbers: range, *, noted: bool) -> None:
        kind = order(noted=noted)
        producer = self.client.create_producer(PLACED, "till", AvroSchema(kind))
        for number in numbers:
            producer.send(
                kind(item=f"i{number % KINDS}", number=number),
                {"n": str(number)},
                f"i{number % KINDS}",
                ordering_key="o",
                sequence_id=number,
                event_timestamp=1_000 + number,
            )
        producer.close()

    def messages(self, topic: str) -> list[Seen]:
        reader = self.client.create_reader(topic, pulsar.MessageId.earliest)
        found = []
        while reader.has_message_available():
            message = reader.read_next(10_000)
            number = re.search(r"seq=(\d+)", str(message._message))
            assert number is not None
            found.append(
                (
                    *(message.data(), message.has_null_value(), message.properties()),
                    *(message.partition_key(), message.ordering_key(), message.event_timestamp()),
                    *(message.producer_name(), int(number[1]), message.schema_version()),
                )
            )
        reader.close()
        return found

    def placed(self) -> list[list[Seen]]:
        return [self.messages(f"{PLACED}-partition-{number}") for number in range(3)]

    def backlog(self, subscription: str) -> int:
        stats = self.admin.get(f"persistent/{PLACED}/partitioned-stats").json()
        return int(stats["subscriptions"][subscription]["msgBacklog"])

    def consumed(self, subscription: str, count: int) -> list[int]:
        """So many messages, acknowledged; the numbers of those."""
        consumer = self.client.subscribe(PLACED, subscription, pulsar.ConsumerType.KeyShared)
        found = []
        for _ in range(count):
            message = consumer.receive(10_000)
            found.append(int(message.properties()["n"]))
            consumer.acknowledge(message)
        consumer.close()
        return found


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Side]:
    server = Pulsar(tmp_path, False, "S")
    server.prepare()
    try:
        server.start()
        side = Side(
            f"http://127.0.0.1:{server.http_port}", f"pulsar://127.0.0.1:{server.broker_port}"
        )
        yield side
        side.close()
    finally:
        server.stop()


@pytest.fixture
def new() -> Iterator[Side]:
    with standalone() as server:
        side = Side(server.http_url, server.pulsar_url)
        yield side
        side.close()


@pytest.fixture
def step(old: Side, new: Side, tmp_path: Path) -> Callable[[int], str]:
    """Run a block of the page in a shell; what it prints."""
    folder = tmp_path / "moving"
    folder.mkdir()
    for name, code in PROGRAMS.items():
        (folder / name).write_text(code)
    names = ("OLD", "OLD_BROKER", "NEW", "NEW_BROKER")
    addresses = dict(zip(names, (*old.urls, *new.urls), strict=True))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(number: int) -> str:
        done = subprocess.run(
            ["bash", "-euc", STEPS[number]],
            cwd=folder,
            env={**os.environ, **addresses, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    return run


def test_the_page_has_what_is_tried() -> None:
    assert list(PROGRAMS) == ["look.py", "definitions.py", "messages.py"]
    assert [shlex.split(block, comments=True)[0] for block in STEPS] == [
        *("export", "python", "python", "python", "for", "mkdir")
    ]


def check_definitions(old: Side, new: Side) -> None:
    got = new.admin.get("namespaces/shop/orders").json()
    assert got["resource_group_name"] == "large ones"
    assert new.shown(GROUP) == old.shown(GROUP)
    assert new.shown(GROUP)["publishRateInMsgs"] == 1_000_000
    assert got["retention_policies"] == {"retentionTimeInMinutes": 9, "retentionSizeInMB": 5}
    assert got["auth_policies"]["namespace_auth"] == {"till": ["produce"]}
    for path in ("partitions", "properties", *(f"{each}?applied=true" for each in DECIDED)):
        said, heard = [each.shown(f"persistent/{PLACED}/{path}") for each in (old, new)]
        assert heard is not None, (path, said)
        assert said == heard or (path == "partitions" and heard.items() <= said.items()), path
    versions = [
        [(each["version"], each["type"]) for each in found.json()["getSchemaResponses"]]
        for found in (side.admin.get(f"schemas/{PLACED}/schemas") for side in (old, new))
    ]
    assert versions == [[(0, "AVRO"), (1, "AVRO")]] * 2


def make_shadow(side: Side) -> None:
    side.put("persistent/shop/orders/billed", {"PULSAR.SHADOW_SOURCE": PAID})
    side.put("persistent/shop/orders/paid/shadowTopics", ["persistent://shop/orders/billed"])
    side.put("persistent/shop/orders/billed/subscription/w")


def check_shadow(side: Side) -> None:
    assert side.shown("persistent/shop/orders/paid/shadowTopics") == [
        "persistent://shop/orders/billed"
    ]
    assert side.shown("persistent/shop/orders/billed/subscriptions") == ["w"]
    assert side.messages("shop/orders/billed") == side.messages(PAID)


@pytest.mark.heavy
def test_an_application_moves_and_goes_back(
    old: Side, new: Side, step: Callable[[int], str]
) -> None:
    space = "namespaces/shop/orders"
    old.put("tenants/shop", {"adminRoles": ["boss"], "allowedClusters": ["standalone"]})
    old.put(space)
    old.change("POST", f"{space}/deduplication", True)
    old.change("POST", f"{space}/retention", {"retentionTimeInMinutes": 9, "retentionSizeInMB": 5})
    old.change("POST", f"{space}/permissions/till", ["produce"])
    old.put(GROUP, {"publishRateInMsgs": 1_000_000})
    old.change("POST", f"{space}/resourcegroup/large%20ones", None)
    old.put(f"persistent/{PLACED}/partitions", 3)
    old.put(f"persistent/{PLACED}/properties", {"owner": "sales"})
    old.change("POST", f"{space}/schemaValidationEnforced", True)
    for path, value in DECIDED.items():
        old.change("POST", f"persistent/{PLACED}/{path}", value)
    for name in ("billing", "shipping"):
        old.consumed(name, 0)
    old.publish(range(1, 61), noted=False)
    old.publish(range(61, 101), noted=True)
    assert sorted(old.consumed("billing", 100)) == list(range(1, 101))
    old.client.create_producer("shop/orders/paid").send(None, partition_key="k")
    make_shadow(old)

    assert "shop/orders nothing" in step(1)
    step(2)
    check_definitions(old, new)
    assert "placed-partition-0" in step(3)
    old.publish(range(101, 121), noted=True)
    step(3)
    assert new.placed() == old.placed()
    assert sum(map(len, new.placed())) == 120
    ((*payment, _name, _number, _version),) = new.messages("shop/orders/paid")
    assert payment[:4] == [b"", True, {}, "k"]
    check_shadow(new)

    step(4)
    producer = new.client.create_producer(PLACED, "till")
    assert producer.last_sequence_id() == 120
    producer.close()
    new.publish(range(115, 131), noted=True)  # the first six are there
    assert sorted(new.consumed("billing", 30)) == list(range(101, 131))
    shipped = new.consumed("shipping", 130)
    for item in range(KINDS):
        mine = [number for number in shipped if number % KINDS == item]
        assert mine == sorted(mine)
    assert sorted(shipped) == list(range(1, 131))
    assert [new.backlog(name) for name in ("billing", "shipping")] == [0, 0]

    new.publish(range(131, 141), noted=True)
    step(5)
    assert old.placed() == new.placed()
    # Apache's broker delivers the last acknowledged message of each partition again: it takes
    # no notice of `isExcluded` if that is no batch (`calculatePositionAckSet` of 4.2)
    again = old.consumed("billing", 10 + sum(map(bool, old.placed())))
    assert {*range(131, 141)} < set(again)
    assert all(number > 120 for number in again)
    assert old.backlog("billing") == 0


@pytest.mark.heavy
def test_an_application_drains(old: Side, new: Side, step: Callable[[int], str]) -> None:
    old.put("tenants/shop", {"adminRoles": [], "allowedClusters": ["standalone"]})
    old.put("namespaces/shop/orders", {"resource_group_name": "deleted"})
    old.put(f"persistent/{PLACED}/partitions", 3)
    old.consumed("billing", 0)
    old.publish(range(1, 31), noted=False)
    step(2)
    assert new.shown("namespaces/shop/orders/resourcegroup") is None
    new.publish(range(31, 61), noted=False)
    assert sorted(old.consumed("billing", 30)) == list(range(1, 31))
    assert sorted(new.consumed("billing", 30)) == list(range(31, 61))
