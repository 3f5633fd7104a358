"""The client's asyncio face: many things at once on one connection."""

import asyncio

import pulsar
import pulsar.asyncio
import pytest
from pulsar import ConsumerType, InitialPosition


@pytest.fixture
def run(magnetar):
    """Runs a coroutine function with a client, within a deadline."""

    def runner(scene):
        async def main():
            client = pulsar.asyncio.Client(
                magnetar.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
            )
            try:
                async with asyncio.timeout(30):
                    return await scene(client)
            finally:
                await client.close()

        return asyncio.run(main())

    return runner


def test_publish_and_consume(run, topic):
    async def scene(client):
        consumer = await client.subscribe(topic, "s")
        producer = await client.create_producer(topic)
        await asyncio.gather(*(producer.send(b"%d" % number) for number in range(100)))
        found = []
        for _ in range(100):
            message = await consumer.receive()
            found.append(message.data())
            await consumer.acknowledge(message)
        return found

    assert run(scene) == [b"%d" % number for number in range(100)]


def test_many_producers_and_consumers_at_once(run, topic):
    async def one(client, number):
        name = f"{topic}-{number}"
        consumer, producer = await asyncio.gather(
            client.subscribe(name, "s", ConsumerType.Shared), client.create_producer(name)
        )
        await producer.send(b"%d" % number)
        message = await consumer.receive()
        await consumer.acknowledge(message)
        await asyncio.gather(consumer.close(), producer.close())
        return int(message.data())

    async def scene(client):
        return await asyncio.gather(*(one(client, number) for number in range(50)))

    assert run(scene) == list(range(50))


def test_seek_and_cumulative(run, topic):
    async def scene(client):
        consumer = await client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
        await (await client.subscribe(topic, "keeper")).close()
        producer = await client.create_producer(topic)
        for number in range(10):
            await producer.send(b"%d" % number)
        messages = [await consumer.receive() for _ in range(10)]
        await consumer.acknowledge_cumulative(messages[-1])
        await consumer.seek(pulsar.MessageId.wrap(pulsar.MessageId.earliest))
        return [(await consumer.receive()).data() for _ in range(10)]

    assert run(scene) == [b"%d" % number for number in range(10)]


def test_wait_for_exclusive(run, topic):
    mode = pulsar.ProducerAccessMode

    async def scene(client):
        holder = await client.create_producer(topic, access_mode=mode.Exclusive)
        waiting = asyncio.ensure_future(
            client.create_producer(topic, access_mode=mode.WaitForExclusive)
        )
        await holder.send(b"mine")
        assert not waiting.done()
        await holder.close()
        await (await waiting).send(b"now")

    run(scene)
