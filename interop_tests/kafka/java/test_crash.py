"""The Java client goes on working while the server is killed and stopped."""

import pytest

from interop_tests.kafka.crash.history import judge_notes
from interop_tests.kafka.crash.work import make_topic, progress
from magnetar import standalone

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

KINDS = [("classic", "none"), ("consumer", "lz4")]


@pytest.mark.parametrize("going", ["kill", pytest.param("stop", marks=pytest.mark.heavy)])
def test_idempotent_producers_and_groups(kafka_java, topics, going):
    under_load(kafka_java, topics, going, 5 if going == "kill" else 2)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_killed_a_hundred_times(kafka_java, topics):
    under_load(kafka_java, topics, "kill", 100)


def under_load(kafka_java, topics, going, times):
    with standalone() as server:
        url = server.bootstrap_servers
        working = [
            kafka_java.start("crash.work", url, make_topic(server, topics(), 3), **kind)
            for kind in [{"protocol": protocol, "codec": codec} for protocol, codec in KINDS]
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
