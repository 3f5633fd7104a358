"""kafka-python and aiokafka in loops of transactions, whose server goes away in the middle of them.

They copy a topic to another, partition by partition, and commit the group's offsets with the
copies. Neither library tells its application that the server was away, it tries again until that is
back. So no error is expected here, and none is caught.
"""

import asyncio
import gc
import logging
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

import aiokafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from magnetar import standalone

from .copying import judge_copies
from .history import Committed, Stored, judge_group
from .trouble import PLAN, GaveUp, Trouble
from .work import DEADLINE_SECONDS, Producing, everything, make_topic

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.structs import OffsetAndMetadata

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

PARTITIONS = 3
BATCH_MAX = 10
COUNT = 2 * len(PLAN) * PARTITIONS * BATCH_MAX
"""At least so many records are to be copied, in about twice as many transactions as go wrong."""
READING = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "isolation_level": "read_committed",
    "max_partition_fetch_bytes": 250,  # one batch of each partition, and so a transaction of all
}


class Job(NamedTuple):
    server: Any
    source: str
    target: str
    ends: dict[int, int]
    """Of the source's partitions."""


@pytest.fixture
def job(topics):
    """To copy a topic with numbers in each of its partitions to one that is empty."""
    with standalone() as server:
        source, target = [make_topic(server, topics(), PARTITIONS) for _ in range(2)]
        producing = Producing(server, source, PARTITIONS, **{"batch.num.messages": BATCH_MAX})
        producing.more(COUNT)
        ends = {one.partition: one.offset + 1 for one in producing.end()}
        yield Job(server, source, target, ends)


@pytest.fixture(params=["kill", pytest.param("stop", marks=pytest.mark.heavy)])
def trouble(request, job) -> Trouble:
    return Trouble(job.server, request.param)


def judge(job: Job, trouble: Trouble, events: list[Stored | Committed]) -> None:
    assert trouble.over, "the work was done before all of the trouble had come"
    judge_group(events, everything(job.server, job.source, PARTITIONS))
    judge_copies(job.server, job.source, job.target, PARTITIONS)


def noted(records: Iterable[Any]) -> list[Stored]:
    """What came, of either library, for the judge."""
    return [Stored(one.partition, one.offset, int(one.value)) for one in records]


# -- kafka-python ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_kafka_python(job, trouble, caplog):
    caplog.set_level(logging.CRITICAL, "kafka")  # what it logs would keep its sockets
    copying = Waiting(job, trouble)
    copying.run()
    gc.collect()  # it forgets sockets of a server that is gone; here it is known that they are its
    judge(job, trouble, copying.events)


class Waiting:
    """Copies with kafka-python, whose calls wait; a thread of its own does the work."""

    def __init__(self, job: Job, trouble: Trouble) -> None:
        self.events: list[Stored | Committed] = []
        self._job, self._trouble = job, trouble
        self._copied: dict[int, int] = {}
        self._where = {"bootstrap_servers": job.server.bootstrap_servers, "retry_backoff_ms": 20}
        self._where |= {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}

    def run(self) -> None:
        self._producer = self._new_producer()
        reading = {**self._where, **READING, "group_id": self._job.source}
        try:
            with closing(kafka.KafkaConsumer(self._job.source, **reading)) as consumer:
                self._copy_all(consumer)
        finally:
            self._producer.close(DEADLINE_SECONDS)

    def _copy_all(self, consumer: Any) -> None:
        while self._copied != self._job.ends:
            found = [one for each in consumer.poll(100).values() for one in each]
            if not found:
                continue
            self.events += noted(found)
            try:
                self._copy(found, consumer.group_metadata())
            except GaveUp as gave_up:
                self._go_back(consumer, gave_up.begins_anew)

    def _new_producer(self) -> Any:
        made = kafka.KafkaProducer(**self._where, transactional_id=self._job.target)
        made.init_transactions()
        return made

    def _copy(self, found: list[Any], group: Any) -> None:
        producer, at = self._producer, self._trouble.at
        producer.begin_transaction()
        sent = [
            producer.send(self._job.target, one.value, partition=one.partition) for one in found
        ]
        at("sent")
        ends = {one.partition: one.offset + 1 for one in found}
        offsets = {
            kafka.TopicPartition(self._job.source, partition): OffsetAndMetadata(end, "", -1)
            for partition, end in ends.items()
        }
        producer.send_offsets_to_transaction(offsets, group)
        at("with offsets")
        for one in sent:
            one.get(DEADLINE_SECONDS)
        at("stored")
        with ThreadPoolExecutor(1) as beside:
            going = beside.submit(at, "committing")
            producer.commit_transaction()
        going.result()
        self.events += [Committed(*each) for each in ends.items()]
        self._copied |= ends
        at("committed")

    def _go_back(self, consumer: Any, begins_anew: bool) -> None:
        """Read again from where the last transaction that was committed ended."""
        if begins_anew:
            self._producer.close()
            self._producer = self._new_producer()
        else:
            self._producer.abort_transaction()
        for where in consumer.assignment():
            consumer.seek(where, consumer.committed(where) or 0)


# -- aiokafka -------------------------------------------------------------------------------------


def test_aiokafka(job, trouble):
    copying = Asynchronous(job, trouble)
    asyncio.run(asyncio.wait_for(copying.run(), 2 * DEADLINE_SECONDS))
    judge(job, trouble, copying.events)


class Asynchronous:
    """Copies with aiokafka, whose tasks go on while the server is away."""

    def __init__(self, job: Job, trouble: Trouble) -> None:
        self.events: list[Stored | Committed] = []
        self._job, self._trouble = job, trouble
        self._copied: dict[int, int] = {}
        self._where = {"bootstrap_servers": job.server.bootstrap_servers, "retry_backoff_ms": 20}

    async def run(self) -> None:
        self._producer = await self._new_producer()
        reading = {**self._where, **READING, "group_id": self._job.source}
        try:
            async with AIOKafkaConsumer(self._job.source, **reading) as consumer:
                await self._copy_all(consumer)
        finally:
            await self._producer.stop()

    async def _copy_all(self, consumer: AIOKafkaConsumer) -> None:
        while self._copied != self._job.ends:
            came = await consumer.getmany(timeout_ms=100)
            found = [one for each in came.values() for one in each]
            if not found:
                continue
            self.events += noted(found)
            try:
                await self._copy(found)
            except GaveUp as gave_up:
                await self._go_back(consumer, gave_up.begins_anew)

    async def _new_producer(self) -> AIOKafkaProducer:
        made = AIOKafkaProducer(**self._where, transactional_id=self._job.target)
        await made.start()
        return made

    async def _copy(self, found: list[Any]) -> None:
        producer, source, target = self._producer, self._job.source, self._job.target
        await producer.begin_transaction()
        sent = [await producer.send(target, one.value, partition=one.partition) for one in found]
        await self._at("sent")
        ends = {one.partition: one.offset + 1 for one in found}
        offsets = {aiokafka.TopicPartition(source, part): end for part, end in ends.items()}
        await producer.send_offsets_to_transaction(offsets, source)
        await self._at("with offsets")
        await asyncio.gather(*sent)
        await self._at("stored")
        await asyncio.gather(self._at("committing"), producer.commit_transaction())
        self.events += [Committed(*each) for each in ends.items()]
        self._copied |= ends
        await self._at("committed")

    async def _at(self, moment: str) -> None:
        await asyncio.to_thread(self._trouble.at, moment)

    async def _go_back(self, consumer: AIOKafkaConsumer, begins_anew: bool) -> None:
        """Read again from where the last transaction that was committed ended."""
        if begins_anew:
            await self._producer.stop()
            self._producer = await self._new_producer()
        else:
            await self._producer.abort_transaction()
        # its `seek_to_committed` stays where it is if nothing is committed yet
        for where in consumer.assignment():
            consumer.seek(where, await consumer.committed(where) or 0)
