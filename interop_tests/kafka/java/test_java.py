"""Apache Kafka's Java clients: records, groups, transactions and tools."""

import pytest

pytestmark = pytest.mark.java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
STICKY = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(play, topic, codec):
    offsets, values = play("records.codec", topic, codec=codec)
    assert offsets == list(range(1_000))
    assert values == [str(number) for number in range(1_000)]


def test_keys_headers_times_and_nothing(play, topic):
    results = [1_600_000_000_000, "CreateTime", ["a=1", "a=null"]]
    assert play("records.nothing", topic) == [
        [*results, "k", None],
        [*results, None, ""],
        [*results, "", "v"],
    ]


def test_offsets(play, topic):
    assert play("records.offsets", topic) == [0, 10, 4, -1, 0]


def test_sizes(play, topic):
    assert play("records.sizes", topic) == ["none", "RecordTooLargeException", "none"]


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "classic"},
        {"protocol": "classic", "assignor": STICKY},
        {"protocol": "consumer"},
    ],
    ids=["classic", "cooperative", "consumer"],
)
def test_groups(play, made, topic, options):
    made(topic, 6)
    assert play("groups.share", topic, count=600, **options) == 600


def test_an_application_moves_over_to_the_newer_protocol_and_back(play, made, topic):
    made(topic, 6)
    assert play("groups.move", topic, count=100) == 900


def test_transactions(play, topic):
    assert play("transactions.ends", topic) == [["0", "1", "2", "3"], ["0", "2"]]


def test_a_zombie_is_fenced(play, topic):
    error, values = play("transactions.fenced", topic)
    assert error in ("ProducerFencedException", "InvalidProducerEpochException")
    assert values == ["heir"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_come_with_the_commit(play, topic, protocol):
    assert play("transactions.offsets", topic, protocol=protocol) == [1, 1, 3]


def test_topics(play, topic):
    assert play("tools.topics", topic) == {
        "made": [3, 1, "100000"],
        "again": "TopicExistsException",
        "same id": True,
        "partitions": 3,
        "retention.ms": "5000",
        "cleanup.policy": "compact,delete",
        "grown": 5,
        "listed": True,
        "gone": "UnknownTopicOrPartitionException",
    }


def test_offsets_by_tools(play, topic):
    assert play("tools.offsets", topic) == {
        "latest": 10,
        "highest": 9,
        "at": 4,
        "after": -1,
        "local": 0,
        "low": 6,
        "earliest": 6,
    }


@pytest.mark.parametrize("protocol", ["Classic", "Consumer"])
def test_groups_by_tools(play, topic, protocol):
    assert play("tools.groups", topic, protocol=protocol.lower()) == {
        "state": "Stable",
        "type": protocol,
        "reads": 1,
        "in use": "GroupNotEmptyException",
        "listed": protocol,
        "offset": [7, "note"],
        "deleted": True,
    }


def test_producers_by_tools(play, topic):
    seen = play("tools.producers", topic)
    assert seen.pop("fenced") in ("ProducerFencedException", "InvalidProducerEpochException")
    assert seen == {"state": "Ongoing", "partitions": 1, "same": True, "begins": 0}


def test_the_cluster(play, topic):
    assert play("tools.cluster", topic) == {
        "nodes": 1,
        "controller": 0,
        "size": True,
        "elected": "ElectionNotNeededException",
        "moving": 0,
    }


def test_quotas_are_set_and_shown(play, topic):
    assert play("quotas.set", topic) == {
        "both": {"producer_byte_rate": 1024.0},
        "everyone": {"request_percentage": 12.5},
        "of the user": 2,
        "strictly": "[{consumer_byte_rate=2048.0}]",
        "defaults": 1,
        "unknown": "InvalidRequestException",
        "negative": "InvalidRequestException",
        "only tried": "[{consumer_byte_rate=2048.0}]",
        "removed": 0,
    }


@pytest.mark.slow
def test_quotas_are_felt(play, made, topic):
    made(topic, 1)
    assert play("quotas.felt", topic) == {
        "producer": True,
        "other": 0.0,
        "records": 24,
        "consumer": True,
    }


def test_mutations_beyond_a_quota_are_tried_again(play, topic):
    assert play("quotas.mutations", topic) is True
