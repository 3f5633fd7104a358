"""Members of a group do not notice that their server was killed or stopped, but for the pause.

They keep their ids, their generation and their partitions, and commit what they had read before.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from interop_tests.kafka.conftest import produce
from interop_tests.kafka.test_groups import Reader
from interop_tests.waiting import until
from magnetar import standalone

from .work import DEADLINE_SECONDS, PATIENT, make_topic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

COUNT = 100
PARTITIONS = 4
GOINGS = ["kill", "stop"]
KINDS = [
    {"partition.assignment.strategy": "range"},
    {"partition.assignment.strategy": "cooperative-sticky"},
    {"group.protocol": "consumer"},
]


def described(server: Any, group: str) -> tuple[str, set[tuple[str, str | None, frozenset[int]]]]:
    """The state of a group, and its members with what they read."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    found = admin.describe_consumer_groups([group])[group].result()
    members = {
        (
            one.member_id,
            one.group_instance_id,
            frozenset(part.partition for part in one.assignment.topic_partitions),
        )
        for one in found.members
    }
    return found.state.name, members


@pytest.mark.parametrize("going", GOINGS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: next(iter(kind.values())))
def test_members_go_on(topic, going, kind) -> None:
    with standalone() as server:
        make_topic(server, topic, PARTITIONS)
        options = {**kind, **PATIENT}
        readers = [
            Reader(server, topic, topic, **options),
            Reader(server, topic, topic, **options, **{"group.instance.id": "static"}),
        ]
        try:
            until(lambda: [one.holds for one in readers] == [2, 2])
            produce(server.bootstrap_servers, topic, COUNT)
            until(lambda: sum(len(one.values) for one in readers) == COUNT)
            before = described(server, topic)
            assert (before[0], len(before[1])) == ("STABLE", 2)
            assigned = [len(one.assigned) for one in readers]
            getattr(server, going)()
            server.start()
            assert described(server, topic) == before, "before anybody has come back"
            produce(server.bootstrap_servers, topic, COUNT, first=COUNT)
            until(lambda: sum(len(one.values) for one in readers) == 2 * COUNT)
            assert described(server, topic) == before
            assert [len(one.assigned) for one in readers] == assigned, "nobody was given anything"
        finally:
            for one in readers:
                one.stop()
        assert sorted(readers[0].values + readers[1].values) == list(range(2 * COUNT))


@pytest.mark.parametrize("going", GOINGS)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_was_read_before_is_committed_after(topic, going, protocol) -> None:
    with standalone() as server:
        make_topic(server, topic, 1)
        produce(server.bootstrap_servers, topic, COUNT)
        settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": topic, **PATIENT}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        settings |= {"group.protocol": protocol}
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        read = consumer.consume(COUNT, DEADLINE_SECONDS)
        getattr(server, going)()
        server.start()
        (results,) = consumer.commit(read[-1], asynchronous=False)
        consumer.close()
    assert (results.error, results.offset) == (None, COUNT)
