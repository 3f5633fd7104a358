"""The brokers: who leads a partition, who coordinates a transaction, and connections to them.

A broker has two connections at the most: one on which batches travel, several at a time, and one
for questions, whose answers are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from ssl import SSLContext
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector.login import NOBODY, Login
from magnetar.spark_connector.writing.connection import BrokerConnection
from magnetar.spark_connector.writing.errors import Unready, WriteError, check
from magnetar.spark_connector.writing.record_batches import ProducerIdentity
from magnetar.wire.kafka.errors import UNKNOWN_TOPIC
from magnetar.wire.kafka.messages.basics import (
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataTopic,
)
from magnetar.wire.kafka.messages.parts import TopicIndexes
from magnetar.wire.kafka.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddTopic,
    DescribeProducersRequest,
    InitProducerIdRequest,
)
from magnetar.wire.kafka.names import called

OF_TRANSACTIONS: Final = 1
"""The key type of coordinators of transactions (KIP-98)."""
NO_TIMEOUT_MS: Final = 60_000
"""A producer without transactions has no use for it, and has to give one."""
Address = tuple[str, int]
LogName = tuple[str, int]
"""A topic by its full name, and a partition."""


class TopicLeaders(Struct, frozen=True):
    """Of each partition of a topic in turn, the node that leads it."""

    nodes: tuple[int, ...]


class Brokers:
    """See the module's docstring. All methods raise `errors.TRANSIENT` for what may pass."""

    def __init__(
        self,
        address: Address,
        attempt_seconds: float,
        tls: SSLContext | None = None,
        login: Login = NOBODY,
    ) -> None:
        """`attempt_seconds` is how long one answer may take."""
        self._tls = tls
        self._login = login
        self._first = address
        self._attempt_seconds = attempt_seconds
        self._addresses: dict[int, Address] = {}
        self._topics: dict[str, TopicLeaders] = {}
        self._for_batches: dict[int, BrokerConnection] = {}
        self._for_questions: dict[Address, BrokerConnection] = {}

    def close(self) -> None:
        """Close all connections, and forget who leads what."""
        for one in (*self._for_batches.values(), *self._for_questions.values()):
            one.close()
        self._for_batches.clear()
        self._for_questions.clear()
        self._topics.clear()

    def connections(self) -> Iterable[BrokerConnection]:
        """Those on which batches travel."""
        return self._for_batches.values()

    def partitions(self, topic: str) -> int:
        """How many a topic has; it is created if the server does so."""
        return len(self._leaders(topic).nodes)

    def leader(self, log: LogName) -> BrokerConnection:
        """The connection for batches of a partition."""
        node = self._node(log)
        found = self._for_batches.get(node)
        if found is None:
            found = self._connected(self._addresses[node])
            self._for_batches[node] = found
        return found

    # -- questions ----------------------------------------------------------------------------

    def new_producer(self) -> ProducerIdentity:
        """A producer that nobody else is."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS)
        response = self._asked(self._first).ask(request)
        check(response.error_code, "no producer id")
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    def add_to_transaction(self, who: ProducerIdentity, logs: Iterable[LogName]) -> None:
        """Let a transaction have partitions, before anything is sent to them."""
        assert who.transactional_id is not None, "it has no transaction"
        request = AddPartitionsToTxnRequest(
            transactional_id=who.transactional_id,
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            topics=[
                AddTopic(name=_called(topic), partitions=[partition]) for topic, partition in logs
            ],
        )
        response = self._asked(self._coordinator(who.transactional_id)).ask(request)
        for topic in response.results_by_topic:
            for one in topic.results_by_partition:
                what = f"{topic.name}, partition {one.partition_index}: no part of a transaction"
                check(one.partition_error_code, what)

    def last_sequence(self, who: ProducerIdentity, log: LogName) -> int:
        """The last number that a producer of this epoch has stored in a partition; -1 for none."""
        topic, partition = log
        request = DescribeProducersRequest(
            topics=[TopicIndexes(name=_called(topic), partition_indexes=[partition])]
        )
        (answer,) = self._asked(self._addresses[self._node(log)]).ask(request).topics
        (found,) = answer.partitions
        check(found.error_code, f"{topic}, partition {partition}", found.error_message)
        for one in found.active_producers:
            if (one.producer_id, one.producer_epoch) == (who.producer_id, who.epoch):
                last: int = one.last_sequence
                return last
        return -1

    # -- finding ------------------------------------------------------------------------------

    def _asked(self, address: Address) -> BrokerConnection:
        found = self._for_questions.get(address)
        if found is None:
            found = self._for_questions[address] = self._connected(address)
        return found

    def _connected(self, address: Address) -> BrokerConnection:
        return BrokerConnection(address, self._attempt_seconds, self._tls, self._login)

    def _node(self, log: LogName) -> int:
        topic, partition = log
        nodes = self._leaders(topic).nodes
        if not 0 <= partition < len(nodes):
            raise WriteError(f"{topic} has {len(nodes)} partitions, and none numbered {partition}")
        if nodes[partition] not in self._addresses:
            raise Unready(f"{topic}, partition {partition}: nobody leads it")
        return nodes[partition]

    def _leaders(self, topic: str) -> TopicLeaders:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = self._looked_up(topic)
        return found

    def _looked_up(self, topic: str) -> TopicLeaders:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=_called(topic))])
        # a broker that creates the topic says first that there is none, as Kafka's do
        for _ in range(2):
            response = self._asked(self._first).ask(request)
            (answer,) = response.topics
            if answer.error_code != UNKNOWN_TOPIC:
                break
        self._addresses |= {one.node_id: (one.host, one.port) for one in response.brokers}
        if answer.error_code == UNKNOWN_TOPIC:
            raise WriteError(f"there is no topic {topic}, and the server creates none by itself")
        check(answer.error_code, topic)
        return TopicLeaders(_in_order(topic, answer))

    def _coordinator(self, transactional_id: str) -> Address:
        request = FindCoordinatorRequest(key=transactional_id, key_type=OF_TRANSACTIONS)
        response = self._asked(self._first).ask(request)
        check(response.error_code, "the coordinator of transactions", response.error_message)
        return response.host, response.port


def _in_order(topic: str, answer: MetadataTopic) -> tuple[int, ...]:
    nodes = {one.partition_index: one.leader_id for one in answer.partitions}
    if not nodes or sorted(nodes) != list(range(len(nodes))):
        raise Unready(f"{topic}: its partitions are not known")
    return tuple(nodes[index] for index in range(len(nodes)))


def _called(topic: str) -> str:
    return called(TopicName.parse(topic))
