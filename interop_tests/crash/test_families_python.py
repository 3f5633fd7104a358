"""The server goes away and comes back in the middle of everything the Python client can do.

Each scene is a generator that yields where that happens. All of them are begun on one server,
which then is stopped or killed and started, once for all; then each is played to its end, with
the clients, producers and consumers that were there before. Nobody tells these anything.

What is demanded is what is promised: what has a receipt is there, what was acknowledged may come
again unless the acknowledgement was confirmed (this client knows no receipts of them), and who
could write before still can, or still can not.
"""

import asyncio
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pulsar
import pulsar.asyncio
import pytest
from pulsar import CompressionType, ConsumerType, InitialPosition, MessageId, ProducerAccessMode

from interop_tests.keys import rsa_files
from interop_tests.pulsar.python.stock import numbered, publish, receive
from magnetar import Standalone, standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

RECEIVE_MS = 30_000
DELAY_SECONDS = 6
MIB = 1024 * 1024
Scene = Generator[None, None, None]
Stage = Callable[["Setting"], Scene]
SCENES: dict[str, Stage] = {}


class Setting:
    """What a scene is played with: a client, a topic and a folder of its own, and the server."""

    def __init__(self, client: pulsar.Client, topic: str, server: Standalone, folder: Path) -> None:
        self.client = client
        self.topic = topic
        self.server = server
        self.folder = folder


def quiet() -> pulsar.ConsoleLogger:
    return pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


def scene(stage: Stage) -> Stage:
    SCENES[stage.__name__] = stage
    return stage


def gather(consumer, expected: Iterable[bytes], also: Iterable[bytes] = ()) -> list[bytes]:
    """Receive and acknowledge until each has come; what came for the first time, in its order."""
    missing, allowed = set(expected), {*expected, *also}
    found: dict[bytes, None] = {}
    while missing:
        message = consumer.receive(RECEIVE_MS)
        consumer.acknowledge(message)
        assert message.data() in allowed, message.data()
        found[message.data()] = None
        missing.discard(message.data())
    return list(found)


def goes_on(consumer, producer, count: int = 20) -> Scene:
    """Half is published before, half after; all of it comes, in order."""
    publish(producer, numbered(count // 2))
    yield
    publish(producer, numbered(count // 2, first=count // 2))
    assert gather(consumer, numbered(count)) == numbered(count)


# -- publishing ----------------------------------------------------------------------------------


@scene
def sync(at):
    consumer, producer = at.client.subscribe(at.topic, "s"), at.client.create_producer(at.topic)
    for body in numbered(5):
        producer.send(body)
    yield
    for body in numbered(5, first=5):
        producer.send(body)
    assert gather(consumer, numbered(10)) == numbered(10)


@scene
def batches(at):
    consumer = at.client.subscribe(at.topic, "s")
    producer = at.client.create_producer(at.topic, batching_enabled=True, batching_max_messages=4)
    yield from goes_on(consumer, producer)


@scene
def codecs(at):
    pairs = []
    for name, codec in CompressionType.__members__.items():
        topic = f"{at.topic}-{name}"
        producer = at.client.create_producer(
            topic, compression_type=codec, batching_enabled=name != "LZ4"
        )
        pairs.append((at.client.subscribe(topic, "s"), producer))
    plays = [goes_on(*pair) for pair in pairs]
    for play in plays:
        next(play)
    yield
    for play in plays:
        assert next(play, "the end") == "the end"


@scene
def chunks(at):
    """Ten megabytes before, ten after.

    Not while they are under way: a chunk that was stored and is sent again because its receipt got
    lost makes a consumer of this client give up the whole message. The Java client's does not.
    """
    consumer = at.client.subscribe(at.topic, "s")
    producer = at.client.create_producer(at.topic, chunking_enabled=True)
    before, after = os.urandom(10 * MIB), os.urandom(10 * MIB)
    producer.send(before)
    assert gather(consumer, [before]) == [before]
    yield
    producer.send(after)
    gather(consumer, [after], also=[before])


@scene
def encryption(at):
    reader = pulsar.CryptoKeyReader(*rsa_files(at.folder))
    consumer = at.client.subscribe(at.topic, "s", crypto_key_reader=reader)
    producer = at.client.create_producer(at.topic, encryption_key="k", crypto_key_reader=reader)
    yield from goes_on(consumer, producer)


@scene
def delayed(at):
    consumer = at.client.subscribe(at.topic, "s", ConsumerType.Shared)
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    sent = time.time()
    producer.send(b"late", deliver_after=timedelta(seconds=DELAY_SECONDS))
    yield
    producer.send(b"now")
    gather(consumer, {b"now", b"late"})
    assert time.time() - sent >= DELAY_SECONDS - 1, "a second is what the server may be early"


@scene
def not_stored(at):
    name = f"non-persistent://public/default/{at.topic}"
    consumer, producer = at.client.subscribe(name, "s"), at.client.create_producer(name)
    producer.send(b"before")
    assert consumer.receive(RECEIVE_MS).data() == b"before"
    yield
    # who is attached first again is not said, and what nobody is there for is gone
    found = None
    while found is None:
        producer.send(b"after")
        try:
            found = consumer.receive(200).data()
        except pulsar.Timeout:
            continue
    assert found == b"after"


# -- consuming -----------------------------------------------------------------------------------


@scene
def partitions(at):
    url = f"{at.server.http_url}/admin/v2/persistent/public/default/{at.topic}/partitions"
    assert httpx.put(url, json=3).status_code == 204
    consumer = at.client.subscribe(at.topic, "s", ConsumerType.Failover)
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    publish(producer, numbered(30))
    yield
    publish(producer, numbered(30, first=30))
    assert set(gather(consumer, numbered(60))) == set(numbered(60))
    assert len(at.client.get_topic_partitions(at.topic)) == 3


@scene
def several_topics(at):
    names = [f"{at.topic}-{number}" for number in range(3)]
    consumer = at.client.subscribe(names, "s", ConsumerType.Shared)
    producers = [at.client.create_producer(name) for name in names]
    for number, producer in enumerate(producers):
        producer.send(b"%d" % number)
    yield
    for number, producer in enumerate(producers):
        producer.send(b"%d" % (number + 3))
    gather(consumer, numbered(6))


@scene
def regex(at):
    producers = [at.client.create_producer(f"{at.topic}-x{number}") for number in range(2)]
    pattern = re.compile(f"persistent://public/default/{at.topic}-x.*")
    consumer = at.client.subscribe(pattern, "s", ConsumerType.Shared)
    producers[0].send(b"0")
    yield
    producers[1].send(b"1")
    gather(consumer, {b"0", b"1"})


@scene
def reader(at):
    at.client.subscribe(at.topic, "keeper").close()
    producer = at.client.create_producer(at.topic)
    publish(producer, numbered(10))
    it = at.client.create_reader(at.topic, MessageId.earliest)
    assert [it.read_next(RECEIVE_MS).data() for _ in range(5)] == numbered(5)
    yield
    publish(producer, numbered(10, first=10))
    assert [it.read_next(RECEIVE_MS).data() for _ in range(15)] == numbered(15, first=5)


@scene
def table_view(at):
    at.client.subscribe(at.topic, "keeper").close()
    producer = at.client.create_producer(at.topic)
    producer.send(b"old", partition_key="k0")
    producer.send(b"stays", partition_key="k1")
    view = at.client.create_table_view(at.topic)
    assert view.get("k0") == b"old"
    yield
    producer.send(b"new", partition_key="k0")
    while view.get("k0") != b"new":
        pass
    assert view.get("k1") == b"stays"


@scene
def seek_by_id(at):
    consumer = at.client.subscribe(at.topic, "s", start_message_id_inclusive=True)
    at.client.subscribe(at.topic, "keeper").close()
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    ids = publish(producer, numbered(20))
    gather(consumer, numbered(20))
    consumer.seek(ids[12])
    yield
    assert gather(consumer, numbered(8, first=12)) == numbered(8, first=12)
    consumer.seek(ids[5])
    assert gather(consumer, numbered(15, first=5)) == numbered(15, first=5)


@scene
def seek_by_time(at):
    consumer = at.client.subscribe(at.topic, "s")
    at.client.subscribe(at.topic, "keeper").close()
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    publish(producer, numbered(5))
    first = receive(consumer, 5)[0].publish_timestamp()
    yield
    publish(producer, numbered(5, first=5))
    consumer.seek(first - 1)
    assert gather(consumer, numbered(10)) == numbered(10)


# -- acknowledging -------------------------------------------------------------------------------


@scene
def individual(at):
    """What was not acknowledged comes again; what was may, as this client asks for no receipts."""
    consumer = at.client.subscribe(at.topic, "s", ConsumerType.Shared)
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    publish(producer, numbered(10))
    for message in receive(consumer, 10):
        if int(message.data()) % 2:
            consumer.acknowledge(message)
    yield
    producer.send(b"the end")
    gather(consumer, {*numbered(10)[::2], b"the end"}, also=numbered(10)[1::2])


@scene
def cumulative(at):
    consumer = at.client.subscribe(at.topic, "s")
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    publish(producer, numbered(10))
    consumer.acknowledge_cumulative(receive(consumer, 10)[5])
    yield
    producer.send(b"the end")
    left = [*numbered(4, first=6), b"the end"]
    assert gather(consumer, left, also=numbered(6))[-5:] == left


@scene
def indexes_of_a_batch(at):
    consumer = at.client.subscribe(at.topic, "s", ConsumerType.Shared, batch_index_ack_enabled=True)
    producer = at.client.create_producer(
        at.topic,
        batching_enabled=True,
        batching_max_messages=10,
        batching_max_publish_delay_ms=60_000,
    )
    ids = publish(producer, numbered(10))
    assert len({each.entry_id() for each in ids}) == 1
    for message in receive(consumer, 10):
        if int(message.data()) % 2:
            consumer.acknowledge(message)
    yield
    gather(consumer, numbered(10)[::2], also=numbered(10)[1::2])


@scene
def ack_timeout(at):
    """Once because the connection was new, and once more because its time was over."""
    consumer = at.client.subscribe(
        at.topic, "s", ConsumerType.Shared, unacked_messages_timeout_ms=10_000
    )
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    publish(producer, numbered(2))
    receive(consumer, 2)
    yield
    times = Counter()
    while set(times) != set(numbered(2)) or min(times.values()) < 2:
        times[consumer.receive(RECEIVE_MS).data()] += 1
    gather(consumer, numbered(2))


@scene
def negative(at):
    consumer = at.client.subscribe(
        at.topic, "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=200
    )
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    publish(producer, numbered(5))
    for message in receive(consumer, 5):
        consumer.negative_acknowledge(message)
    yield
    gather(consumer, numbered(5))


@scene
def dead_letters(at):
    """The server forgets how often it sent what; in the end it is found among the dead."""
    policy = pulsar.ConsumerDeadLetterPolicy(2, f"{at.topic}-dead", "undertaker")
    consumer = at.client.subscribe(
        at.topic,
        "s",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=policy,
    )
    publish(at.client.create_producer(at.topic, batching_enabled=False), numbered(3))
    for _ in range(3 * 2):
        consumer.negative_acknowledge(consumer.receive(RECEIVE_MS))
    yield
    dead = at.client.subscribe(
        f"{at.topic}-dead", "undertaker", initial_position=InitialPosition.Earliest
    )
    found: set[bytes] = set()
    while found != set(numbered(3)):
        for which in (consumer, dead):
            try:
                message = which.receive(100)
            except pulsar.Timeout:
                continue
            if which is dead:
                found.add(message.data())
            else:
                consumer.negative_acknowledge(message)


@scene
def redelivery_counts(at):
    """They begin again, as they are kept in memory, and go up again."""
    consumer = at.client.subscribe(
        at.topic, "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=100
    )
    at.client.create_producer(at.topic).send(b"x")
    for count in range(3):
        message = consumer.receive(RECEIVE_MS)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)
    yield
    counts = []
    for _ in range(3):
        message = consumer.receive(RECEIVE_MS)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    # the first of these may have lain in the client's queue before the server went
    assert counts[2] == counts[1] + 1
    assert counts[2] <= 2


# -- who may write -------------------------------------------------------------------------------


@scene
def exclusive_producer(at):
    mode = ProducerAccessMode.Exclusive
    holder = at.client.create_producer(at.topic, access_mode=mode)
    holder.send(b"before")
    yield
    holder.send(b"after")
    with pytest.raises(pulsar.ProducerFenced):
        at.client.create_producer(at.topic, access_mode=mode)
    holder.send(b"still mine")


@scene
def waiting_producer(at):
    mode = ProducerAccessMode.WaitForExclusive
    consumer = at.client.subscribe(at.topic, "s")
    holder = at.client.create_producer(at.topic, access_mode=mode, send_timeout_millis=0)
    holder.send(b"holder")
    with ThreadPoolExecutor(1) as waits:
        waiting = waits.submit(at.client.create_producer, at.topic, access_mode=mode)
        yield
        # whoever is back first has the topic: if it is the one that waited, the holder is closed
        with suppress(pulsar.AlreadyClosed):
            holder.close()
        waiting.result(60).send(b"next")
    assert gather(consumer, {b"holder", b"next"}) == [b"holder", b"next"]


@scene
def fencing_producer(at):
    consumer = at.client.subscribe(at.topic, "s")
    old = at.client.create_producer(at.topic, access_mode=ProducerAccessMode.Exclusive)
    old.send(b"old")
    new = at.client.create_producer(at.topic, access_mode=ProducerAccessMode.ExclusiveWithFencing)
    new.send(b"new")
    yield
    with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed)):
        old.send(b"too late")
    new.send(b"newer")
    assert gather(consumer, {b"old", b"new", b"newer"}) == [b"old", b"new", b"newer"]


# -- the same client's other face ------------------------------------------------------------------


@scene
def asyncio_face(at):
    """Of a client of its own: what awaits, awaits in a loop that stands still meanwhile."""

    async def begin():
        client = pulsar.asyncio.Client(at.server.pulsar_url, logger=quiet())
        consumer = await client.subscribe(at.topic, "s")
        producer = await client.create_producer(at.topic)
        await asyncio.gather(*(producer.send(body) for body in numbered(10)))
        return client, consumer, producer

    async def go_on(client, consumer, producer):
        await asyncio.gather(*(producer.send(body) for body in numbered(10, first=10)))
        missing = set(numbered(20))
        while missing:
            message = await consumer.receive()
            await consumer.acknowledge(message)
            missing.discard(message.data())
        await client.close()

    with asyncio.Runner() as runner:
        begun = runner.run(begin())
        yield
        runner.run(asyncio.wait_for(go_on(*begun), RECEIVE_MS / 1000))


# -- under way at that moment: begun last ------------------------------------------------------


@scene
def asynchronous_and_in_flight(at):
    """What has no receipt yet when the server goes gets one later."""
    consumer = at.client.subscribe(at.topic, "s")
    producer = at.client.create_producer(
        at.topic, batching_enabled=False, max_pending_messages=0, send_timeout_millis=0
    )
    results: list[pulsar.Result] = []
    for body in numbered(5_000):
        producer.send_async(body, lambda result, _: results.append(result))
    yield
    producer.flush()
    assert results == [pulsar.Result.Ok] * 5_000
    assert gather(consumer, numbered(5_000)) == numbered(5_000)


# -- the play ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["killed", "stopped"])
def begun(request, tmp_path_factory):
    """All scenes, played to their middle; meanwhile the server was away."""
    with standalone() as server:
        client = pulsar.Client(server.pulsar_url, operation_timeout_seconds=120, logger=quiet())
        playing = {}
        for name, stage in SCENES.items():
            folder = tmp_path_factory.mktemp(name)
            setting = Setting(client, f"{request.param}-{name}", server, folder)
            playing[name] = stage(setting)
            next(playing[name])
        if request.param == "killed":
            server.kill()
        else:
            server.stop()
        server.start()
        yield playing
        client.shutdown()


@pytest.mark.parametrize("name", SCENES)
def test_goes_on(begun, name):
    assert next(begun[name], "the end") == "the end"
