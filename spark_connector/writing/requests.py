"""Produce requests of record batches, and what their responses say. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector.writing.record_batches import EncodedBatch, ProducerIdentity
from magnetar.wire.kafka.messages.records import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)
from magnetar.wire.kafka.names import called, topic_of

ALL: Final = -1
"""acks=all: the batch is stored as safely as the server can."""


def produce_request(
    who: ProducerIdentity, batches: Mapping[tuple[str, int], EncodedBatch], timeout_seconds: float
) -> ProduceRequest:
    """One batch for each of some partitions, of topics by their full names."""
    topics: dict[str, list[ProducePartition]] = {}
    for (topic, partition), batch in batches.items():
        part = ProducePartition(index=partition, records=batch.data)
        topics.setdefault(called(TopicName.parse(topic)), []).append(part)
    return ProduceRequest(
        transactional_id=who.transactional_id,
        acks=ALL,
        timeout_ms=round(timeout_seconds * 1000),
        topic_data=[
            ProduceTopic(name=name, partition_data=parts) for name, parts in topics.items()
        ],
    )


def results(response: ProduceResponse) -> Iterator[tuple[tuple[str, int], int, str | None]]:
    """Of each partition the error code, 0 for none, and what the server says of it."""
    for topic in response.responses:
        full = topic_of(topic.name).full
        for part in topic.partition_responses:
            yield (full, part.index), part.error_code, part.error_message
