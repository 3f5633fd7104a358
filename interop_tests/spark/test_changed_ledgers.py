"""Ledgers that are compacted or deleted between the plan of a query and its read; without Spark."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from msgspec.structs import replace

from interop_tests.waiting import until
from magnetar import Standalone, standalone
from magnetar.bookie.format import ledger_metadata
from magnetar.core.kernel.errors import EntryNotFound
from magnetar.spark_connector import options
from magnetar.spark_connector.errors import DataLossError
from magnetar.spark_connector.planning import planner
from magnetar.spark_connector.reading.range_reader import Task, batches
from magnetar.spark_connector.reading.stored_ledgers import LedgerDirectory
from magnetar.spark_connector.service import LedgerFacts, ReadingService

QUICK = {"segment.ms": "50", "min.cleanable.dirty.ratio": "0.01"}
KEYS = 7


@pytest.fixture(scope="module")
def server() -> Iterator[Standalone]:
    """One that rolls, compacts and deletes at once."""
    quick = {"housekeeping_interval_seconds": 0.02}
    at_once = {"gc_wait_seconds": 0.05, "flush_interval_seconds": 0.05}
    with standalone(bookie_port=0, broker=quick, storage=at_once) as made:
        yield made


def planned(server: Standalone, topic: str, **given: str) -> list[Task]:
    return planner.batch(
        options.parse({"service.url": server.http_url, "topic": topic, **given}), 2
    )


def rows(tasks: list[Task]) -> list[dict[str, Any]]:
    return [row for task in tasks for batch in batches(task) for row in batch.to_pylist()]


class Log:
    """A topic of Kafka's with several ledgers."""

    def __init__(self, server: Standalone, topic: str) -> None:
        self.server, self.topic = server, topic
        where = {"bootstrap.servers": server.bootstrap_servers}
        self.admin = AdminClient(where)
        self.admin.create_topics([NewTopic(topic, 1, 1, config=QUICK)])[topic].result(60)
        self.producer = Producer(where)
        self.sent = 0
        self.service = ReadingService([server.http_url], 30.0)

    def plan(self) -> Any:
        (plan,) = self.service.topics([self.topic]).topics.values()
        return plan

    def send(self, ledgers: int) -> None:
        """Messages, until there are so many ledgers."""
        while len(self.plan().ledgers) < ledgers:
            for _ in range(2 * KEYS):
                key = b"k%d" % (self.sent % KEYS)
                self.producer.produce(self.topic, b"%d" % self.sent, key)
                self.sent += 1
            self.producer.flush(60)
            time.sleep(0.01)

    def compact(self) -> None:
        name = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        changed = ConfigResource("TOPIC", self.topic, incremental_configs=[name])
        (done,) = self.admin.incremental_alter_configs([changed]).values()
        done.result(60)

    def wait_replaced(self, tasks: list[Task]) -> None:
        """Until the log has none of the ledgers that these tasks are to read, but the last, as it
        was planned; and bookies, if they are to be asked, have none of their entries.
        """
        ledgers = {one.ledger_id: task for task in tasks for one in task.ranges}
        del ledgers[max(ledgers)]
        until(
            lambda: all(one.kept or one.id not in ledgers for one in self.plan().ledgers),
            "the ledgers are not compacted",
        )
        for ledger_id, task in ledgers.items():
            if not task.from_gateway:
                facts = LedgerFacts(task.ledgers, task.bookies)
                directory = LedgerDirectory(facts, unasked, is_server=False)
                with directory, directory.opened(self.topic, ledger_id) as ledger:
                    until(partial(_is_gone, ledger), f"ledger {ledger_id} is still there")


def unasked() -> ReadingService:
    raise AssertionError("bookies are asked, not the server")


def _is_gone(ledger: Any) -> bool:
    try:
        return not list(ledger.read(0, 0))
    except EntryNotFound:
        return True


@pytest.fixture
def log(server, topic) -> Log:
    return Log(server, topic)


@pytest.mark.parametrize(("reads", "fails"), [("bookies", "false"), ("gateway", "true")])
def test_what_is_compacted_meanwhile_is_no_loss(server, log, topic, reads, fails) -> None:
    """Of the first ledger nothing is left, of the second some, and that is read where it is."""
    log.send(2)
    log.producer.produce(topic, b"once", b"once")
    log.send(5)
    tasks = planned(server, topic, readFrom=reads, failOnDataLoss=fails)
    before = rows(tasks)
    log.compact()
    log.wait_replaced(tasks)
    found = rows(tasks)
    offsets = [row["offset"] for row in found]
    assert offsets == sorted(set(offsets))
    assert len(found) < len(before)
    latest = {row["key"]: row["value"] for row in before}
    assert {row["key"]: row["value"] for row in found} == latest


@pytest.mark.parametrize("reads", ["bookies", "gateway"])
def test_what_is_deleted_meanwhile_is_a_loss(server, log, topic, reads) -> None:
    log.send(5)
    tasks = planned(server, topic, readFrom=reads)
    lenient = planned(server, topic, readFrom=reads, failOnDataLoss="false")
    end = log.plan().ledgers[-1].first_index
    log.admin.delete_records([TopicPartition(topic, 0, end)])
    log.wait_replaced(tasks)
    gone = tasks[0].ranges[0].ledger_id
    said = f"{topic}-partition-0: entries {gone}:0 to .*: the ledger has been deleted"
    with pytest.raises(DataLossError, match=said):
        rows(tasks)
    assert [row["offset"] for row in rows(lenient)] == list(range(end, end + len(rows(lenient))))


def planned_elsewhere(task: Task, bookie: str, port: int) -> Task:
    """As if that bookie had had the ledgers when they were planned."""
    ledgers = {}
    for ledger_id, stored in task.ledgers.items():
        metadata, version = ledger_metadata.decode(stored)
        for segment in metadata.segment:
            segment.ensembleMember[:] = [bookie]
        ledgers[ledger_id] = ledger_metadata.encode(metadata, version)
    return replace(task, ledgers=ledgers, bookies={bookie: ("127.0.0.1", port)})


def test_other_bookies_have_what_one_had_that_is_down(server, log, topic) -> None:
    """It is asked once: the server knows the others."""
    log.send(3)
    tasks = planned(server, topic, pollTimeoutMs="30000")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there any more
    began = time.monotonic()
    assert rows([planned_elsewhere(each, "down", port) for each in tasks]) == rows(tasks)
    assert time.monotonic() - began < 15, "half the time for which bookies are asked"
