"""Confluent's Python client, which is librdkafka: records, transactions, tools."""

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

SECONDS = 20
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RETENTION = "retention.ms"


@pytest.fixture
def producer(server):
    """Makes producers."""

    def make(**options):
        options = {name.replace("_", "."): value for name, value in options.items()}
        quiet = {"bootstrap.servers": server.bootstrap_servers, "log_level": 0}
        return Producer({**quiet, **options})

    return make


@pytest.fixture
def read(server):
    """So many messages of one partition from its beginning; without a number, all to its end."""

    def fetch(topic, count=None, partition=0, **options):
        options = {name.replace("_", "."): value for name, value in options.items()}
        settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": "nobody"}
        consumer = Consumer({**settings, "enable.partition.eof": True, **options})
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        found = []
        while len(found) != count:
            message = consumer.poll(SECONDS)
            assert message is not None, f"{len(found)} came"
            if message.error() is None:
                found.append(message)
            elif count is None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                break
        consumer.close()
        return found

    return fetch


def values(messages):
    return [message.value() for message in messages]


# -- producing and consuming ----------------------------------------------------------------------


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
@pytest.mark.parametrize("codec", CODECS)
def test_codecs(producer, read, topic, codec, idempotent):
    expected = [b"%d " % number * 50 for number in range(1_000)]
    sender = producer(compression_type=codec, linger_ms=20, enable_idempotence=idempotent)
    for value in expected:
        sender.produce(topic, value)
    assert sender.flush(SECONDS) == 0
    found = read(topic, 1_000)
    assert values(found) == expected
    assert [message.offset() for message in found] == list(range(1_000))


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_batches_of_a_megabyte(producer, read, topic, idempotent):
    """The server receives them one by one into a place of their own, with small ones between."""
    expected = [b"%06d" % number * 170 for number in range(12_000)]
    sender = producer(linger_ms=100, batch_size=1_000_000, enable_idempotence=idempotent)
    for first in range(0, 12_000, 4_000):
        sender.produce(topic, expected[first])
        assert sender.flush(SECONDS) == 0
        for value in expected[first + 1 : first + 4_000]:
            sender.produce(topic, value)
        assert sender.flush(SECONDS) == 0
    assert values(read(topic, 12_000)) == expected


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acknowledgements(producer, read, topic, acks):
    sender = producer(acks=acks, enable_idempotence=False)
    results = []
    for number in range(10):
        sender.produce(topic, b"%d" % number, on_delivery=lambda *each: results.append(each))
    assert sender.flush(SECONDS) == 0
    assert [error for error, _ in results] == [None] * 10
    if acks != 0:
        assert [message.offset() for _, message in results] == list(range(10))
    assert values(read(topic, 10)) == [b"%d" % number for number in range(10)]


def test_keys_headers_times_and_nothing(producer, read, topic):
    headers = [("a", b"1"), ("a", None), ("b", b"\xff"), ("", b"")]
    pairs = [(b"k", b"v"), (b"", b""), (None, None), (b"\xff\x00", None), (None, b"v")]
    sender = producer()
    for key, value in pairs:
        sender.produce(topic, value, key, headers=headers, timestamp=1_600_000_000_000)
    assert sender.flush(SECONDS) == 0
    found = read(topic, 5)
    assert [(message.key(), message.value()) for message in found] == pairs
    assert {message.timestamp()[1] for message in found} == {1_600_000_000_000}
    assert [message.headers() for message in found] == [headers] * 5


def test_sizes(producer, read, topic):
    sender = producer(message_max_bytes=5_000_000)
    results = []
    for size in (1_000_000, 2_000_000, 1):
        sender.produce(topic, b"x" * size, on_delivery=lambda error, _: results.append(error))
        assert sender.flush(SECONDS) == 0
    first, second, third = results
    assert first is third is None
    assert second.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert [len(value) for value in values(read(topic, 2, fetch_message_max_bytes=1_000))] == [
        1_000_000,
        1,
    ]


def test_partitions_that_are_not_there(producer, made, topic):
    sender, results = producer(), []
    made(topic, 2)
    for partition in (1, 2):
        sender.produce(
            topic, b"", partition=partition, on_delivery=lambda *each: results.append(each)
        )
    assert sender.flush(SECONDS) == 0
    codes = {error and error.code() for error, _ in results}
    assert codes == {None, KafkaError._UNKNOWN_PARTITION}


def test_offsets_by_time_and_beyond_the_ends(server, producer, topic):
    sender = producer()
    for number in range(10):
        sender.produce(topic, b"%d" % number, timestamp=1_600_000_000_000 + number)
        assert sender.flush(SECONDS) == 0
    settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": "nobody"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    requested = [TopicPartition(topic, 0, 1_600_000_000_000 + each) for each in (0, 5, 99)]
    assert [consumer.offsets_for_times([one])[0].offset for one in requested] == [0, 5, -1]
    consumer.assign([TopicPartition(topic, 0, 1_000_000)])
    assert consumer.poll(SECONDS).value() == b"0", "reset to the earliest"
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (0, 10)
    consumer.close()


# -- transactions ---------------------------------------------------------------------------------


def test_transactions(producer, read, topic):
    sender = producer(transactional_id=topic)
    sender.init_transactions(SECONDS)
    for value, end in [
        (b"a", sender.commit_transaction),
        (b"b", sender.abort_transaction),
        (b"c", sender.commit_transaction),
    ]:
        sender.begin_transaction()
        sender.produce(topic, value)
        assert sender.flush(SECONDS) == 0
        end(SECONDS)
    assert values(read(topic, isolation_level="read_committed")) == [b"a", b"c"]
    assert values(read(topic, isolation_level="read_uncommitted")) == [b"a", b"b", b"c"]


def test_what_is_open_is_not_read(producer, read, topic):
    sender, other = producer(transactional_id=topic), producer()
    sender.init_transactions(SECONDS)
    sender.begin_transaction()
    sender.produce(topic, b"open")
    assert sender.flush(SECONDS) == 0
    other.produce(topic, b"behind")
    assert other.flush(SECONDS) == 0
    assert read(topic, isolation_level="read_committed") == []
    sender.commit_transaction(SECONDS)
    assert values(read(topic, 2, isolation_level="read_committed")) == [b"open", b"behind"]


def test_a_zombie_is_fenced(producer, read, topic):
    zombie, heir = producer(transactional_id=topic), producer(transactional_id=topic)
    zombie.init_transactions(SECONDS)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie")
    assert zombie.flush(SECONDS) == 0
    heir.init_transactions(SECONDS)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction(SECONDS)
    assert caught.value.args[0].fatal()
    assert caught.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    heir.begin_transaction()
    heir.produce(topic, b"heir")
    heir.commit_transaction(SECONDS)
    assert values(read(topic, isolation_level="read_committed")) == [b"heir"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_come_with_the_commit(server, producer, made, topic, protocol):
    made(topic, 1)
    plain = producer()
    for number in range(4):
        plain.produce(topic, b"%d" % number)
    assert plain.flush(SECONDS) == 0
    settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": topic}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**settings, "group.protocol": protocol})
    consumer.subscribe([topic])
    sender = producer(transactional_id=topic)
    sender.init_transactions(SECONDS)
    for end in (sender.commit_transaction, sender.abort_transaction):
        assert len(consumer.consume(2, SECONDS)) == 2
        sender.begin_transaction()
        position = consumer.position(consumer.assignment())
        sender.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), SECONDS)
        end(SECONDS)
    assert consumer.committed(consumer.assignment(), SECONDS)[0].offset == 2
    consumer.close()


# -- administration -------------------------------------------------------------------------------


def result(futures):
    """Of a call for one thing."""
    (future,) = futures.values()
    return future.result(SECONDS)


def code_of(futures):
    with pytest.raises(KafkaException) as caught:
        result(futures)
    return caught.value.args[0].code()


def configs(admin, topic):
    """By name: the value, and whether the topic has it of its own."""
    found = result(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
    given = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: (each.value, each.source == given) for name, each in found.items()}


def altered(admin, topic, operation, name, value, kind=ConfigResource.Type.TOPIC):
    entry = ConfigEntry(name, value, incremental_operation=operation)
    expected = ConfigResource(kind, topic, incremental_configs=[entry])
    return admin.incremental_alter_configs([expected])


def test_topics(admin, topic):
    expected = NewTopic(topic, 3, 1, config={RETENTION: "100000", "cleanup.policy": "compact"})
    result(admin.create_topics([expected], validate_only=True))
    assert topic not in admin.list_topics().topics
    result(admin.create_topics([expected]))
    assert code_of(admin.create_topics([expected])) == KafkaError.TOPIC_ALREADY_EXISTS
    described = result(admin.describe_topics(TopicCollection([topic])))
    assert [each.id for each in described.partitions] == [0, 1, 2]
    assert configs(admin, topic)[RETENTION] == ("100000", True)
    assert configs(admin, topic)["cleanup.policy"] == ("compact", True)
    result(admin.create_partitions([NewPartitions(topic, 5)]))
    assert code_of(admin.create_partitions([NewPartitions(topic, 4)])) == (
        KafkaError.INVALID_PARTITIONS
    )
    assert len(admin.list_topics(topic).topics[topic].partitions) == 5
    result(admin.delete_topics([topic]))
    assert topic not in admin.list_topics().topics
    assert code_of(admin.delete_topics([topic])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topics_that_cannot_be(admin, topic):
    bad = {
        KafkaError.TOPIC_EXCEPTION: NewTopic("no/such", 1),
        KafkaError.INVALID_PARTITIONS: NewTopic(topic, 0),
        KafkaError.INVALID_REPLICATION_FACTOR: NewTopic(topic, 1, 3),
        KafkaError.INVALID_CONFIG: NewTopic(topic, 1, 1, config={"no.such": "1"}),
    }
    assert [code_of(admin.create_topics([each])) for each in bad.values()] == list(bad)


def test_configs(admin, made, topic):
    made(topic, 1)
    default = configs(admin, topic)[RETENTION]
    assert not default[1]
    result(altered(admin, topic, AlterConfigOpType.SET, RETENTION, "5000"))
    result(altered(admin, topic, AlterConfigOpType.APPEND, "cleanup.policy", "compact"))
    assert configs(admin, topic)[RETENTION] == ("5000", True)
    assert configs(admin, topic)["cleanup.policy"] == ("delete,compact", True)
    result(altered(admin, topic, AlterConfigOpType.DELETE, RETENTION, None))
    assert configs(admin, topic)[RETENTION] == default
    refused = altered(admin, topic, AlterConfigOpType.SET, RETENTION, "soon")
    assert code_of(refused) == KafkaError.INVALID_CONFIG


def test_configs_of_groups(admin, topic):
    name, kind = "consumer.session.timeout.ms", ConfigResource.Type.GROUP

    def shown():
        found = result(admin.describe_configs([ConfigResource(kind, topic)]))[name]
        return found.value, found.source

    assert shown() == ("45000", ConfigSource.DEFAULT_CONFIG.value)
    result(altered(admin, topic, AlterConfigOpType.SET, name, "50000", kind))
    assert shown() == ("50000", ConfigSource.GROUP_CONFIG.value)
    refused = altered(admin, topic, AlterConfigOpType.SET, name, "60001", kind)
    assert code_of(refused) == KafkaError.INVALID_CONFIG
    result(altered(admin, topic, AlterConfigOpType.DELETE, name, None, kind))
    assert shown() == ("45000", ConfigSource.DEFAULT_CONFIG.value)


def test_a_limit_of_sizes_takes_effect(admin, producer, made, topic):
    made(topic, 1)
    result(altered(admin, topic, AlterConfigOpType.SET, "max.message.bytes", "1000"))
    sender, results = producer(), []
    for size in (100, 10_000):
        sender.produce(topic, b"x" * size, on_delivery=lambda error, _: results.append(error))
        assert sender.flush(SECONDS) == 0
    assert results[0] is None
    assert results[1].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_offsets_and_deleting_records(admin, producer, read, made, topic):
    made(topic, 1)
    sender = producer()
    for number in range(10):
        sender.produce(topic, b"%d" % number, timestamp=1_600_000_000_000 + number)
        assert sender.flush(SECONDS) == 0
    one = TopicPartition(topic, 0)

    def offset(spec):
        return result(admin.list_offsets({one: spec})).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.max_timestamp()) == 9
    assert offset(OffsetSpec.for_timestamp(1_600_000_000_004)) == 4
    deleted = result(admin.delete_records([TopicPartition(topic, 0, 6)]))
    assert deleted.low_watermark == 6
    assert offset(OffsetSpec.earliest()) == 6
    assert values(read(topic)) == [b"6", b"7", b"8", b"9"]
    beyond = admin.delete_records([TopicPartition(topic, 0, 11)])
    assert code_of(beyond) == KafkaError.OFFSET_OUT_OF_RANGE


def test_offsets_of_groups(admin, made, topic):
    made(topic, 2)
    offsets = [TopicPartition(topic, 0, 7, "note"), TopicPartition(topic, 1, 8)]
    expected = ConsumerGroupTopicPartitions(topic, offsets)
    result(admin.alter_consumer_group_offsets([expected]))
    requested = ConsumerGroupTopicPartitions(topic)
    found = result(admin.list_consumer_group_offsets([requested])).topic_partitions
    assert sorted((one.partition, one.offset, one.metadata) for one in found) == [
        (0, 7, "note"),
        (1, 8, None),
    ]
    result(admin.delete_consumer_groups([topic]))
    assert code_of(admin.delete_consumer_groups([topic])) == KafkaError.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_never_joins_commits_too(server, made, topic, protocol):
    made(topic, 1)
    options = {"bootstrap.servers": server.bootstrap_servers, "group.id": topic}
    consumer = Consumer({**options, "group.protocol": protocol})
    consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    (found,) = consumer.committed([TopicPartition(topic, 0)], 10)
    assert found.offset == 7
    consumer.close()


def test_the_cluster(admin, server):
    found = admin.describe_cluster().result(SECONDS)
    (node,) = found.nodes
    assert (node.id, f"{node.host}:{node.port}") == (0, server.bootstrap_servers)
    assert found.controller.id == 0
    assert found.cluster_id == admin.list_topics().cluster_id
