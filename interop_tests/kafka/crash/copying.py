"""A loop of transactions: what comes from one topic goes to another, and the offsets with it.

It is what applications are told to do. After an error that ends the transaction they go back to the
committed offsets; after one that ends the producer, a new one of the same name takes over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from .history import judge_log
from .work import DEADLINE_SECONDS, PATIENT, everything

AT_ONCE_MAX = 40
SECONDS = 10
KNOWS_ITS_BROKERS = {"metadata.recovery.strategy": "none"}
"""Else librdkafka 2.16 forgets a broker that is away, and then waits for ever to be told that it is
back before it sends offsets there (confluentinc/librdkafka#5511)."""


class Copying:
    """See the module's docstring."""

    def __init__(self, server: Any, source: str, target: str, **options: Any) -> None:
        self._target = target
        self._copied = 0
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._settings = {"bootstrap.servers": server.bootstrap_servers, **PATIENT}
        self._settings |= KNOWS_ITS_BROKERS
        group = {"group.id": source, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        group |= {"isolation.level": "read_committed", "fetch.wait.max.ms": 50}
        self._consumer = Consumer({**self._settings, **group, **options})
        self._consumer.subscribe([source])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def more(self, count: int) -> None:
        self._until(self._copied + count)

    def end(self, count: int) -> None:
        """Waits until so many have been copied in all."""
        self._until(count)
        self._ending.set()
        self._thread.join()
        self._consumer.close()

    def _until(self, goal: int) -> None:
        with self._changed:
            done = self._changed.wait_for(lambda: self._copied >= goal, DEADLINE_SECONDS)
        assert done, f"{self._copied} of {goal} are copied"

    def _run(self) -> None:
        producer = self._new_producer()
        while not self._ending.is_set():
            found = [one for one in self._consumer.consume(AT_ONCE_MAX, 0.05) if not one.error()]
            if not found:
                continue
            try:
                self._copy(producer, found)
            except KafkaException as error:
                if not error.args[0].fatal():
                    patiently(producer.abort_transaction)
                else:
                    producer = self._new_producer()
                self._go_back()
                continue
            with self._changed:
                self._copied += len(found)
                self._changed.notify_all()

    def _new_producer(self) -> Producer:
        made = Producer({**self._settings, "transactional.id": self._target})
        patiently(made.init_transactions)
        return made

    def _copy(self, producer: Producer, found: list[Message]) -> None:
        producer.begin_transaction()
        for one in found:
            producer.produce(self._target, one.value(), partition=one.partition())
        ends = {(one.topic(), one.partition()): one.offset() + 1 for one in found}
        offsets = [TopicPartition(*where, offset) for where, offset in ends.items()]
        metadata = self._consumer.consumer_group_metadata()
        patiently(lambda _: producer.send_offsets_to_transaction(offsets, metadata, SECONDS))
        patiently(producer.commit_transaction)

    def _go_back(self) -> None:
        """Read again from where the last transaction that was committed ended."""
        mine = self._consumer.assignment()
        committed: list[TopicPartition] = []
        patiently(lambda _: committed.extend(self._consumer.committed(mine, SECONDS)))
        for one in committed:
            if one.offset < 0:
                one.offset = OFFSET_BEGINNING
            self._consumer.seek(one)


def patiently(call: Callable[[float], Any]) -> None:
    """Call, again for as long as the client says that this may help."""
    while True:
        try:
            call(SECONDS)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def judge_copies(server: Any, source: str, target: str, partitions: int) -> None:
    """All of the source is in the target, once and in order, and the group of its name knows."""
    committed = {"isolation.level": "read_committed"}
    there = everything(server, source, partitions)
    copies = everything(server, target, partitions, **committed)
    judge_log([], copies)
    assert len(copies) == len(there)
    group = {"bootstrap.servers": server.bootstrap_servers, "group.id": source, **committed}
    consumer = Consumer({**group, **PATIENT})
    parts = [TopicPartition(source, each) for each in range(partitions)]
    ends = {one.partition: one.offset for one in consumer.committed(parts, DEADLINE_SECONDS)}
    consumer.close()
    assert ends == {one.partition: one.offset + 1 for one in there}
