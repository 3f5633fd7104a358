"""A Kafka broker small enough to read, for tests of `kafkaraw`; kafka-python judges the batches.

It stores nothing and answers as its `script` says, so that a test can refuse a batch, forget one or
store it twice. Invariant: a frame or a batch that is not sound ends up in `complaints`.
"""

import socket
import warnings
from collections.abc import Callable

from bench.tests.framed import Framed
from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka import apis
from magnetar.wire.kafka.apis import RequestHeader
from magnetar.wire.kafka.messages.basics import ApiVersionsResponse
from magnetar.wire.kafka.messages.records import (
    ListedOffsetsPartition,
    ListedOffsetsTopic,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
)
from magnetar.wire.kafka.messages.topics import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it reads its own files in a way of the past
    from kafka.record import MemoryRecords

Script = Callable[[int], tuple[int, int] | None]
"""What the batch of that number is answered with: error and offset, or nothing ever."""


def in_order(number: int) -> tuple[int, int]:
    return 0, number


class KafkaBroker:
    """Answers on a port of its own until the block ends."""

    def __init__(self, script: Script = in_order) -> None:
        self.script = script
        self.values: list[list[bytes]] = []
        """Of each batch in turn."""
        self.places: list[tuple[str, int]] = []
        self.complaints: list[str] = []
        self.framed = Framed(self.hear)
        self.port = self.framed.port

    def __enter__(self) -> "KafkaBroker":
        self.framed.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.framed.__exit__()

    def hear(self, peer: socket.socket, frame: bytes) -> bool:
        try:
            header = apis.decode_header(frame, 0)
            requested = apis.decode_request(header.key, header.version, frame, header.end)
        except WireError as error:
            self.complaints.append(str(error))
            return False
        answer = self.answer(requested)
        if answer is not None:
            self.say(peer, header, answer)
        return True

    def say(self, peer: socket.socket, header: RequestHeader, answer) -> None:
        results = apis.encode_response(header.key, header.version, header.correlation_id, answer)
        peer.sendall(b"".join(results))

    def answer(self, requested):
        match requested:
            case CreateTopicsRequest():
                topics = [
                    CreatedTopic(name=topic.name, error_code=0, error_message=None)
                    for topic in requested.topics
                ]
                return CreateTopicsResponse(topics=topics)
            case ListOffsetsRequest():
                return ListOffsetsResponse(topics=[listed(topic) for topic in requested.topics])
            case ProduceRequest():
                return self.produced(requested)
            case _:
                return ApiVersionsResponse(error_code=0, api_keys=[])

    def produced(self, requested: ProduceRequest) -> ProduceResponse | None:
        (topic,) = requested.topic_data
        (part,) = topic.partition_data
        batch = MemoryRecords(part.records).next_batch()
        if not batch.validate_crc():
            self.complaints.append("wrong checksum")
        self.places.append((topic.name, part.index))
        self.values.append([record.value for record in batch])
        results = self.script(len(self.values) - 1)
        if results is None:
            return None
        stored = ProducedPartition(index=part.index, error_code=results[0], base_offset=results[1])
        return ProduceResponse(
            responses=[ProducedTopic(name=topic.name, partition_responses=[stored])]
        )


def listed(topic) -> ListedOffsetsTopic:
    parts = [
        ListedOffsetsPartition(partition_index=part.partition_index, error_code=0, offset=0)
        for part in topic.partitions
    ]
    return ListedOffsetsTopic(name=topic.name, partitions=parts)
