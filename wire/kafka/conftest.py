"""A session without a socket: requests in, responses out, a broker over fakes behind it."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from magnetar.core.broker.broker import Broker
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.line import Line
from magnetar.wire.kafka import apis
from magnetar.wire.kafka.codec.declare import Request, Response
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.records import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.tests.frame import feed_large, framed


class Client:
    """One client: asks, and hears what it is answered, in order."""

    def __init__(self, front: KafkaFront, *, known: bool = False, large: bool = False) -> None:
        """`known`: it has produced before, in the same words; `large`: so much now that its batches
        are received by themselves.
        """
        self.front = front
        self._known = known
        self._large = large
        self.line = Line()
        connection: Any = self.line
        self.wire, self.session = front.listener("kafka")(connection)
        self._requests: list[tuple[type[Response], int, bool]] = []

    def ask(self, request: Request, version: int | None = None) -> None:
        """Send a request; what is answered is for `receive`."""
        version = request.VERSIONS[1] if version is None else version
        api = apis.APIS[request.KEY]
        self._requests.append((api.response, version, api.is_flexible(version)))
        frame = framed(request, version, len(self._requests), b"c")
        if self._known and isinstance(request, ProduceRequest):
            self.wire.shapes.remember(frame[4:], 0, version, "c", request)
        if self._large and isinstance(request, ProduceRequest):
            feed_large(self.wire, frame, len(frame) - 1)
        else:
            self.wire.feed(frame)
        for event in self.wire.take_events():
            self.session.handle(event)

    def receive(self) -> list[Any]:
        """What was answered since the last time."""
        data, at, replies = b"".join(self.wire.take_outgoing()), 0, []
        while at < len(data):
            size, correlation_id = struct.unpack_from(">ii", data, at)
            response, version, flexible = self._requests[correlation_id - 1]
            begin = at + 8 + (flexible and response.__name__ != "ApiVersionsResponse")
            found, end = decoder(response, version, flexible)(data[: at + 4 + size], begin)
            assert end == at + 4 + size
            replies.append(found)
            at = end
        return replies

    async def exchange(self, request: Request, version: int | None = None) -> Any:
        """Ask one thing, and hear the one answer."""
        self.ask(request, version)
        await settled()
        (replies,) = self.receive()
        return replies

    async def produce(self, topic: str, *batches: bytes, acks: int = -1) -> ProducedPartition:
        """One batch to partition 0 of a topic; of several, the last answer."""
        for batch in batches:
            self.ask(produce_request(topic, batch, acks=acks), 9)
        await settled()
        part: ProducedPartition = self.receive()[-1].responses[0].partition_responses[0]
        return part

    async def fetch(self, topic: str, offset: int, **more: Any) -> FetchedPartition:
        """From partition 0 of a topic, what is there now."""
        replies = await self.exchange(fetch_request(topic, offset, **more), 12)
        part: FetchedPartition = replies.responses[0].partitions[0]
        return part


def produce_request(topic: str, batch: bytes, *, acks: int = -1, index: int = 0) -> ProduceRequest:
    part = ProducePartition(index=index, records=batch)
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[ProduceTopic(name=topic, partition_data=[part])],
    )


def fetch_request(
    topic: str,
    offset: int,
    *,
    wait_ms: int = 0,
    min_bytes: int = 0,
    size: int = 1 << 20,
    committed: bool = False,
) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=size,
        isolation_level=int(committed),
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )


class Stage:
    """A broker and its clients."""

    def __init__(self, stores: Stores, broker: Broker, **options: Any) -> None:
        self.stores = stores
        self.broker = broker
        self.front = KafkaFront(broker, KafkaOptions(**options))
        broker.spawn(self.front.services.member_store.run)
        self.known = False
        """Whether its clients have produced before."""
        self.large = False
        """Whether their batches come as large ones do."""

    async def client(self, *topics: str) -> Client:
        """A client that has asked for topics until they were there."""
        made = Client(self.front, known=self.known, large=self.large)
        if topics:
            requested = [MetadataRequestTopic(name=name) for name in topics]
            await made.exchange(MetadataRequest(topics=requested), 9)
            replies = await made.exchange(MetadataRequest(topics=requested), 9)
            assert [topic.error_code for topic in replies.topics] == [0] * len(topics)
        return made


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stores = Stores()
    async with running(stores) as broker:
        yield Stage(stores, broker)


@pytest.fixture
async def slow_stage() -> AsyncIterator[Stage]:
    """Storage that confirms when the test says so."""
    stores = Stores(sync_at_once=False)
    async with running(stores) as broker:
        yield Stage(stores, broker)
