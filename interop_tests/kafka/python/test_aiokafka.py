"""aiokafka: the asyncio client, whose requests are the oldest that anybody still sends."""

import asyncio

import aiokafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
SECONDS = 60


@pytest.fixture
def run(server):
    """Has a test's body run by asyncio, which it has to itself."""

    def play(body):
        asyncio.run(asyncio.wait_for(body(server.bootstrap_servers), SECONDS))

    return play


async def read(where, topic, count, **options):
    settings = {"bootstrap_servers": where, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(topic, **settings, **options) as consumer:
        return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_codecs(run, topic, codec, idempotent):
    expected = [b"%d " % number * 50 for number in range(200)]

    async def body(where):
        options = {"compression_type": codec, "enable_idempotence": idempotent, "linger_ms": 20}
        async with AIOKafkaProducer(bootstrap_servers=where, **options) as producer:
            sent = [await producer.send(topic, value) for value in expected]
            assert [(await one).offset for one in sent] == list(range(200))
        assert [one.value for one in await read(where, topic, 200)] == expected

    run(body)


def test_keys_headers_times_and_nothing(run, topic):
    headers = [("a", b"1"), ("a", b"\xff")]
    pairs = [(b"k", b"v"), (b"k", None), (None, b"")]

    async def body(where):
        async with AIOKafkaProducer(bootstrap_servers=where) as producer:
            for key, value in pairs:
                at = {"timestamp_ms": 1_600_000_000_000, "headers": headers}
                await producer.send_and_wait(topic, value, key, **at)
        found = await read(where, topic, 3)
        assert [(one.key, one.value) for one in found] == pairs
        assert {one.timestamp for one in found} == {1_600_000_000_000}
        assert [list(one.headers) for one in found] == [headers] * 3

    run(body)


def test_a_loop_of_transactions(run, made, topics):
    source, target = made(topics(), 1), made(topics(), 1)

    async def body(where):
        async with AIOKafkaProducer(bootstrap_servers=where) as plain:
            for number in range(20):
                await plain.send_and_wait(source, b"%d" % number)
        options = {"group_id": source, "auto_offset_reset": "earliest"}
        options |= {"enable_auto_commit": False, "isolation_level": "read_committed"}
        consumer = AIOKafkaConsumer(source, bootstrap_servers=where, **options)
        producer = AIOKafkaProducer(bootstrap_servers=where, transactional_id=source)
        async with consumer, producer:
            for number in range(20):
                message = await consumer.getone()
                await producer.begin_transaction()
                await producer.send(target, message.value)
                where_to = {TopicPartition(source, 0): message.offset + 1}
                await producer.send_offsets_to_transaction(where_to, source)
                if number % 5 == 4:  # this one, and then it is done again
                    await producer.abort_transaction()
                    await producer.begin_transaction()
                    await producer.send(target, message.value)
                    await producer.send_offsets_to_transaction(where_to, source)
                await producer.commit_transaction()
            # it does not ask to wait for offsets that are decided and not carried out yet
            while await consumer.committed(TopicPartition(source, 0)) != 20:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        found = await read(where, target, 20, isolation_level="read_committed")
        assert [one.value for one in found] == [b"%d" % number for number in range(20)]

    run(body)


def test_a_zombie_is_fenced(run, topic):
    async def body(where):
        settings = {"bootstrap_servers": where, "transactional_id": topic}
        async with AIOKafkaProducer(**settings) as zombie:
            await zombie.begin_transaction()
            await zombie.send_and_wait(topic, b"zombie")
            async with AIOKafkaProducer(**settings):
                with pytest.raises(aiokafka.errors.ProducerFenced):
                    await zombie.commit_transaction()

    run(body)


def test_offsets(run, topic):
    base = 1_600_000_000_000

    async def body(where):
        async with AIOKafkaProducer(bootstrap_servers=where) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"", timestamp_ms=base + number)
        one = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=where) as consumer:
            assert await consumer.beginning_offsets([one]) == {one: 0}
            assert await consumer.end_offsets([one]) == {one: 10}
            found = await consumer.offsets_for_times({one: base + 4})
            assert found[one].offset == 4
            assert (await consumer.offsets_for_times({one: base + 40}))[one] is None

    run(body)
