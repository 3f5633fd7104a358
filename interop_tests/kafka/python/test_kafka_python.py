"""kafka-python: the client without a line of C, which asks for many things in ways of its own."""

import warnings

import pytest

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
    from kafka.errors import ProducerFencedError
    from kafka.structs import OffsetAndMetadata

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SECONDS = 20
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def opened(server):
    """Makes clients of a kind, and closes them after the test."""
    made = []

    def make(kind, *words, **options):
        made.append(kind(*words, bootstrap_servers=server.bootstrap_servers, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def read(opened):
    """So many messages of partition 0 from its beginning."""

    def fetch(topic, count, **options):
        options.setdefault("consumer_timeout_ms", SECONDS * 1_000)
        consumer = opened(KafkaConsumer, auto_offset_reset="earliest", **options)
        consumer.assign([TopicPartition(topic, 0)])
        return [message for _, message in zip(range(count), consumer, strict=False)]

    return fetch


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(opened, read, topic, codec):
    producer = opened(KafkaProducer, compression_type=codec, linger_ms=20)
    expected = [b"%d " % number * 50 for number in range(200)]
    sent = [producer.send(topic, value) for value in expected]
    assert [one.get(SECONDS).offset for one in sent] == list(range(200))
    assert [message.value for message in read(topic, 200)] == expected


def test_keys_headers_times_and_nothing(opened, read, topic):
    producer = opened(KafkaProducer)
    headers = [("a", b"1"), ("a", b"\xff")]
    for key, value in [(b"k", b"v"), (b"k", None), (None, b"")]:
        producer.send(topic, value, key, headers=headers, timestamp_ms=1_600_000_000_000)
    producer.flush(SECONDS)
    found = read(topic, 3)
    assert [(one.key, one.value) for one in found] == [(b"k", b"v"), (b"k", None), (None, b"")]
    assert {one.timestamp for one in found} == {1_600_000_000_000}
    assert [list(one.headers) for one in found] == [headers] * 3


def test_a_group_goes_on_where_it_was(opened, made, topic):
    made(topic, 2)
    producer = opened(KafkaProducer)
    sent = [producer.send(topic, b"%d" % number, partition=number % 2) for number in range(20)]
    for one in sent:
        one.get(SECONDS)
    options = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    found: list[int] = []
    for goal in (10, 20):
        consumer = opened(KafkaConsumer, topic, max_poll_records=5, **options)
        while len(found) < goal:
            for records in consumer.poll(1_000).values():
                found += [int(one.value) for one in records]
        consumer.commit()
        consumer.close()
    assert sorted(found) == list(range(20))


def test_transactions(opened, read, topic):
    producer = opened(KafkaProducer, transactional_id=topic)
    producer.init_transactions()
    for value, end in [
        (b"a", producer.commit_transaction),
        (b"b", producer.abort_transaction),
        (b"c", producer.commit_transaction),
    ]:
        producer.begin_transaction()
        producer.send(topic, value).get(SECONDS)
        end()
    assert [one.value for one in read(topic, 3)] == [b"a", b"b", b"c"]
    found = read(topic, 2, isolation_level="read_committed")
    assert [one.value for one in found] == [b"a", b"c"]


def test_a_zombie_is_fenced(opened, topic):
    zombie = opened(KafkaProducer, transactional_id=topic)
    zombie.init_transactions()
    zombie.begin_transaction()
    zombie.send(topic, b"zombie").get(SECONDS)
    opened(KafkaProducer, transactional_id=topic).init_transactions()
    with pytest.raises(ProducerFencedError):
        zombie.commit_transaction()


def test_offsets(opened, topic):
    producer = opened(KafkaProducer)
    base = 1_600_000_000_000
    for number in range(10):
        producer.send(topic, b"", timestamp_ms=base + number).get(SECONDS)
    consumer, one = opened(KafkaConsumer), TopicPartition(topic, 0)
    assert consumer.beginning_offsets([one]) == {one: 0}
    assert consumer.end_offsets([one]) == {one: 10}
    assert consumer.offsets_for_times({one: base + 4})[one].offset == 4
    assert consumer.offsets_for_times({one: base + 40})[one] is None


def test_tools(opened, made, topic):
    made(topic, 2)
    admin, one = opened(KafkaAdminClient), TopicPartition(topic, 0)
    producer = opened(KafkaProducer)
    for _ in range(5):
        producer.send(topic, b"v", partition=0).get(SECONDS)
    (described,) = admin.describe_topics([topic])
    assert [each["partition_index"] for each in described["partitions"]] == [0, 1]
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "50000"})
    admin.alter_configs([resource])
    found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    assert found["topic"][topic]["retention.ms"]["value"] == "50000"
    own = {"consumer.session.timeout.ms": "50000"}
    admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, topic, own)])
    listed = admin.list_config_resources()
    assert listed["broker"] == ["0"]
    assert topic in listed["topic"]
    assert topic in admin.list_config_resources([ConfigResourceType.GROUP])["group"]
    admin.create_partitions({topic: 3})
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 3
    assert admin.list_partition_offsets({one: OffsetSpec.LATEST})[one].offset == 5
    admin.delete_records({one: 3})
    assert admin.list_partition_offsets({one: OffsetSpec.EARLIEST})[one].offset == 3
    admin.alter_group_offsets(topic, {one: OffsetAndMetadata(4, "note", -1)})
    assert admin.list_group_offsets(topic)[topic][one].offset == 4
    assert topic in {each["group_id"] for each in admin.list_groups()}
    admin.delete_groups([topic])
    assert topic not in {each["group_id"] for each in admin.list_groups()}
    assert admin.describe_producers([one])[one].active_producers
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
