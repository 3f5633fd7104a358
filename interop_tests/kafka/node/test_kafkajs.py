"""KafkaJS, the client that most programs in JavaScript use; the scenes are in main.js."""

import pytest

from interop_tests.kafka.crash.history import judge_notes
from interop_tests.kafka.crash.work import make_topic, progress
from magnetar import standalone

pytestmark = [pytest.mark.node, pytest.mark.timeout(180)]

TIME = 1_600_000_000_000


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_that_a_record_carries(play, codec):
    assert play("records", codec=codec) == [
        [0, TIME, "k", None, [["a", "1"], ["b", ["2", "3"]]]],
        [1, TIME, None, "", []],
        [2, TIME, "", "v", []],
        [3, TIME, "long", "padding", []],
    ]


def test_transactions(play):
    assert play("transactions") == [["0", "1", "2", "3"], ["0", "2"], [1, 1, 3, 3]]


def test_members_share(play):
    size, most = play("share")
    assert size == 300
    assert most <= 2, "what was not committed yet may come again when partitions move"


def test_batches_pauses_and_seeking(play):
    assert play("batches") == [True, ["45", "46", "47", "48", "49"]]


def test_resets_of_a_group(play):
    """KafkaJS commits -2 and -1 for this; its consumers go where they are told to begin then."""
    assert play("resets") == {
        "first": 10,
        "earliest": ["-2", "-2"],
        "resolved": ["0", "0"],
        "anew": 10,
        "latest": ["-1", "-1"],
        "new": [10, 11],
        "set": "3",
    }


def test_topics(play):
    assert play("topics") == {
        "made": True,
        "again": False,
        "refused": "INVALID_TOPIC_EXCEPTION",
        "partitions": 5,
        "listed": True,
        "configs": {"cleanup.policy": "compact", "retention.ms": "604800000"},
        "cluster": [1, 0],
    }


def test_offsets(play):
    assert play("offsets") == {
        "ends": ["0", "10"],
        "at": "4",
        "beyond": "10",
        "after": ["6", "10"],
        "read": ["6", "7", "8", "9"],
    }


def test_groups_by_tools(play):
    assert play("groups") == {
        "described": ["Stable", "consumer", "RoundRobinAssigner", 1],
        "listed": "consumer",
        "used": "NON_EMPTY_GROUP",
        "deleted": "none",
    }


@pytest.mark.slow
@pytest.mark.parametrize("going", ["kill", "stop"])
def test_work_goes_on_while_the_server_goes(kafka_node, topics, going):
    with standalone() as server:
        topic = make_topic(server, topics(), 3)
        working = kafka_node.start("crash", server.bootstrap_servers, topic, seconds=150)
        for _ in range(2):
            progress([working])
            getattr(server, going)()
            server.start()
        progress([working])
        working.tell("end")
        judge_notes(working.result())
