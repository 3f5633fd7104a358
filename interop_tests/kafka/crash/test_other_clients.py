"""kafka-python, aiokafka and kcat while their server is killed and stopped. The judge is the same.

Each sends numbered records as an idempotent producer, and reads them in a group, before and after a
kill and a stop; the libraries also amid them.
"""

import asyncio
import gc
import logging
import shutil
import subprocess
import warnings

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from magnetar import standalone

from .history import Committed, Stored, judge_group, judge_log
from .work import everything, make_topic

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # kafka-python forgets sockets of a server that is gone
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROUND = 200
"""Records sent before the server goes away, half of them awaited; and the same at the end."""
GOINGS = ["kill", "stop"]
SECONDS = 60


@pytest.fixture
def server():
    with standalone() as started:
        yield started


def judge(server, topic, acknowledged, events) -> None:
    found = everything(server, topic, 1)
    assert len(found) == (len(GOINGS) + 1) * ROUND
    judge_log(acknowledged, found)
    judge_group(events, found)


def test_kafka_python(server, topic, caplog) -> None:
    caplog.set_level(logging.CRITICAL, "kafka")  # what it logs would keep its sockets
    make_topic(server, topic, 1)
    acknowledged, events = _kafka_python(server, topic)
    gc.collect()  # here it is known whose sockets those are
    judge(server, topic, acknowledged, events)


def _kafka_python(server, topic) -> tuple[list, list]:
    quick = {
        "bootstrap_servers": server.bootstrap_servers,
        "reconnect_backoff_ms": 20,
        "reconnect_backoff_max_ms": 200,
        "retry_backoff_ms": 20,
    }
    producer = kafka.KafkaProducer(**quick, enable_idempotence=True, linger_ms=2)
    reading = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = kafka.KafkaConsumer(topic, **quick, **reading)
    acknowledged, events, count = [], [], 0

    def send():
        nonlocal count
        numbers = range(count, count + ROUND)
        count += ROUND
        return [(number, producer.send(topic, b"%d" % number)) for number in numbers]

    def note(sent) -> None:
        for number, one in sent:
            results = one.get(SECONDS)
            acknowledged.append(Stored(results.partition, results.offset, number))

    def read() -> None:
        """Until all that was acknowledged has come; then commit."""
        seen = {one.offset for one in events if isinstance(one, Stored)}
        while len(seen) < len(acknowledged):
            for records in consumer.poll(100).values():
                events.extend(Stored(0, one.offset, int(one.value)) for one in records)
                seen.update(one.offset for one in records)
        consumer.commit()
        events.append(Committed(0, max(seen) + 1))

    for going in GOINGS:
        sent = send()
        note(sent[: ROUND // 2])
        getattr(server, going)()
        server.start()
        note(sent[ROUND // 2 :])
        read()
    note(send())
    read()
    producer.close()
    consumer.close()
    return acknowledged, events


def test_aiokafka(server, topic) -> None:
    make_topic(server, topic, 1)
    asyncio.run(asyncio.wait_for(_aiokafka(server, topic), 2 * SECONDS))


async def _aiokafka(server, topic) -> None:
    where = {"bootstrap_servers": server.bootstrap_servers, "retry_backoff_ms": 20}
    reading = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    acknowledged, events, count = [], [], 0
    producer = AIOKafkaProducer(**where, enable_idempotence=True, linger_ms=2)
    consumer = AIOKafkaConsumer(topic, **where, **reading)

    async def send():
        nonlocal count
        numbers = range(count, count + ROUND)
        count += ROUND
        return [(number, await producer.send(topic, b"%d" % number)) for number in numbers]

    async def note(sent) -> None:
        for number, one in sent:
            results = await one
            acknowledged.append(Stored(results.partition, results.offset, number))

    async def read() -> None:
        seen = {one.offset for one in events if isinstance(one, Stored)}
        while len(seen) < len(acknowledged):
            one = await consumer.getone()
            events.append(Stored(0, one.offset, int(one.value)))
            seen.add(one.offset)
        await consumer.commit()
        events.append(Committed(0, max(seen) + 1))

    async with producer, consumer:
        for going in GOINGS:
            sent = await send()
            await note(sent[: ROUND // 2])
            await asyncio.to_thread(getattr(server, going))
            await asyncio.to_thread(server.start)
            await note(sent[ROUND // 2 :])
            await read()
        await note(await send())
        await read()
    judge(server, topic, acknowledged, events)


def test_kcat(server, topic) -> None:
    """It ends when its server goes: what it was told before is there, and its group goes on."""
    make_topic(server, topic, 1)
    path = shutil.which("kcat")
    assert path is not None, "these tests need kcat, a package of Debian"

    def run(*words: str, said: str = "") -> str:
        command = [path, "-b", server.bootstrap_servers, "-q", *words]
        done = subprocess.run(
            command, input=said, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    events: list[Stored | Committed] = []
    for round_ in range(len(GOINGS) + 1):
        numbers = range(round_ * ROUND, (round_ + 1) * ROUND)
        said = "".join(f"{number}\n" for number in numbers)
        run("-P", "-t", topic, "-X", "enable.idempotence=true", said=said)
        if round_ < len(GOINGS):
            getattr(server, GOINGS[round_])()
            server.start()
        earliest = ["-X", "auto.offset.reset=earliest", "-c", str(ROUND)]
        results = run("-G", topic, "-f", "%o %s\n", *earliest, topic)
        for line in results.splitlines():
            offset, number = map(int, line.split())
            events.append(Stored(0, offset, number))
        assert events[-1].number == numbers[-1]
    judge(server, topic, [], events)
