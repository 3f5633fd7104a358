"""Work of librdkafka that goes on while the server comes and goes, noted for the judge."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from interop_tests.driver import Playing

from .history import Committed, Stored

IN_FLIGHT_MAX = 200
WANTED_AHEAD_MAX = 500
"""A producer sends so many more than were asked for, and then waits until more are."""
COMMIT_EVERY = 50
DEADLINE_SECONDS = 45
PATIENT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}
"""A client that looks soon whether the server is back, and says nothing of it."""


class Producing:
    """An idempotent producer that sends numbers to the partitions of a topic in turn."""

    def __init__(self, server: Any, topic: str, partitions: int, **options: Any) -> None:
        self.acknowledged: list[Stored] = []
        self.failed: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self._ending = threading.Event()
        self._room = threading.Semaphore(IN_FLIGHT_MAX)
        self._changed = threading.Condition()
        self._count = 0
        self._wanted = 0
        settings = {"bootstrap.servers": server.bootstrap_servers, "message.timeout.ms": 0}
        settings |= {"enable.idempotence": True, "linger.ms": 2, "retry.backoff.ms": 20}
        self._producer = Producer({**settings, **PATIENT, **options})
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def more(self, count: int) -> None:
        """Waits until so many more have been acknowledged."""
        with self._changed:
            goal = self._wanted = len(self.acknowledged) + count
            assert self._changed.wait_for(self._reached(goal), DEADLINE_SECONDS), self._where()

    def end(self) -> list[Stored]:
        """Sends no more; what was acknowledged, which is all that was sent."""
        self._ending.set()
        self._thread.join()
        assert self._producer.flush(DEADLINE_SECONDS) == 0
        assert not self.failed
        assert len(self.acknowledged) == self._count
        return self.acknowledged

    def _reached(self, goal: int) -> Callable[[], bool]:
        return lambda: len(self.acknowledged) >= goal or bool(self.failed)

    def _where(self) -> str:
        return f"{len(self.acknowledged)} of {self._count} acknowledged; {self.failed[:3]}"

    def _may_send(self) -> bool:
        return self._count < self._wanted + WANTED_AHEAD_MAX

    def _send(self) -> None:
        while not self._ending.is_set():
            if not self._may_send() or not self._room.acquire(blocking=False):
                self._producer.poll(0.02)
                continue
            number, partition = divmod(self._count, self._partitions)
            self._count += 1
            self._producer.produce(
                self._topic,
                b"%d" % number,
                partition=partition,
                on_delivery=self._note(number, partition),
            )
            self._producer.poll(0)

    def _note(self, number: int, partition: int) -> Callable[[Any, Any], None]:
        def delivered(error: Any, message: Any) -> None:
            self._room.release()
            with self._changed:
                if error is not None:
                    self.failed.append(str(error))
                else:
                    self.acknowledged.append(Stored(partition, message.offset(), number))
                self._changed.notify_all()

        return delivered


class Reading:
    """A member of a group, which commits now and then what it has read."""

    def __init__(self, server: Any, topic: str, group: str, **options: Any) -> None:
        self.events: list[Stored | Committed] = []
        self._seen: set[tuple[int, int]] = set()
        self._uncommitted = 0
        self._changed = threading.Condition()
        self._ending = threading.Event()
        settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": group}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        settings |= {"fetch.wait.max.ms": 50, "fetch.error.backoff.ms": 20, "retry.backoff.ms": 20}
        self._consumer = Consumer({**settings, **PATIENT, **options})
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def end(self, count: int) -> list[Stored | Committed]:
        """Waits until so many different records have come."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self._seen) >= count, DEADLINE_SECONDS)
        self._ending.set()
        self._thread.join()
        self._consumer.close()
        assert came, f"{len(self._seen)} of {count} came"
        return self.events

    def _read(self) -> None:
        while not self._ending.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            record = Stored(message.partition(), message.offset(), int(message.value()))
            self.events.append(record)
            self._uncommitted += 1
            if self._uncommitted >= COMMIT_EVERY:
                self._commit()
            with self._changed:
                self._seen.add((record.partition, record.offset))
                self._changed.notify_all()

    def _commit(self) -> None:
        try:
            done = self._consumer.commit(asynchronous=False)
        except KafkaException:  # the server is away: some later commit will tell
            return
        self._uncommitted = 0
        for one in done:
            if one.error is None and one.offset >= 0:
                self.events.append(Committed(one.partition, one.offset))


def make_topic(server: Any, name: str, partitions: int) -> str:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, **PATIENT})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    return name


def progress(working: Collection[Playing]) -> None:
    """Waits until each of these scenes has done more."""
    for one in working:
        one.tell("more")
    for one in working:
        one.wait_for("more")


def everything(server: Any, topic: str, partitions: int, **options: Any) -> list[Stored]:
    """All that is in a topic's partitions, each to its end."""
    settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": "nobody"}
    consumer = Consumer({**settings, **PATIENT, "enable.partition.eof": True, **options})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(DEADLINE_SECONDS)
        assert message is not None, f"{len(found)} came, and no end of them"
        if message.error() is None:
            found.append(Stored(message.partition(), message.offset(), int(message.value())))
        else:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            ended += 1
    consumer.close()
    return found
