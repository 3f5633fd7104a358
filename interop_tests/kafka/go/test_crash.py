"""Clients for Go go on working while the server is killed and stopped."""

import pytest

from interop_tests.kafka.crash.history import judge_notes
from interop_tests.kafka.crash.work import make_topic, progress
from magnetar import standalone

pytestmark = [pytest.mark.go, pytest.mark.slow, pytest.mark.timeout(300)]

KINDS = [
    ("franz.crash", {"kind": "cooperative", "codec": "none"}),
    ("franz.crash", {"kind": "consumer", "codec": "lz4"}),
    ("sarama.crash", {"kind": "range", "codec": "zstd"}),
]


@pytest.mark.parametrize("going", ["kill", pytest.param("stop", marks=pytest.mark.heavy)])
def test_idempotent_producers_and_groups(kafka_go, topics, going):
    under_load(kafka_go, topics, going, 3 if going == "kill" else 1)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_killed_fifty_times(kafka_go, topics):
    under_load(kafka_go, topics, "kill", 50)


def under_load(kafka_go, topics, going, times):
    with standalone() as server:
        url = server.bootstrap_servers
        working = [
            kafka_go.start(family, url, make_topic(server, topics(), 3), seconds=1_500, **kind)
            for family, kind in KINDS
        ]
        for _ in range(times):
            progress(working)
            getattr(server, going)()
            server.start()
        progress(working)
        for one in working:
            one.tell("end")
        for one in working:
            judge_notes(one.result())
