"""Topics made, enlarged and deleted by request.

What cannot be done here is refused, not overlooked: replicas on other brokers, and, for the time
being, any configuration of a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from core import administration
from core.errors import AlreadyExists, BrokerError
from core.names import TopicName
from wire.kafka.errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    NONE,
    code_of,
)
from wire.kafka.messages.topics import (
    CreatedPartitionsTopic,
    CreatedTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

DEFAULT: Final = -1


class Refused(Exception):
    """Why a topic is not made; `code` is Kafka's."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


async def on_create_topics(session: KafkaSession, asked: Asked) -> CreateTopicsResponse:
    request = asked.request
    assert isinstance(request, CreateTopicsRequest)
    return CreateTopicsResponse(
        topics=[
            await _created(session, topic, for_real=not request.validate_only)
            for topic in request.topics
        ]
    )


async def _created(session: KafkaSession, topic: CreateTopic, *, for_real: bool) -> CreatedTopic:
    told = CreatedTopic(name=topic.name, error_code=NONE, error_message=None)
    try:
        wanted = _checked(session, topic)
        name = TopicName.parse(topic.name)
        if for_real:
            await administration.create_partitioned(session.broker, name, wanted)
        elif await session.broker.catalog.partitions(name) or await session.broker.exists(name):
            raise AlreadyExists(f"topic {topic.name} exists")
        told.num_partitions, told.replication_factor = wanted, 1
    except BrokerError as error:
        told.error_code, told.error_message = code_of(error), str(error)
    except Refused as refused:
        told.error_code, told.error_message = refused.code, str(refused)
    return told


def _checked(session: KafkaSession, topic: CreateTopic) -> int:
    """How many partitions it gets, if it may be made."""
    if topic.assignments:
        raise Refused(INVALID_REPLICA_ASSIGNMENT, "there is one broker to put partitions on")
    if topic.replication_factor not in (DEFAULT, 1):
        raise Refused(INVALID_REPLICATION_FACTOR, "there is one broker, and so one replica")
    if topic.configs:
        names = ", ".join(config.name for config in topic.configs)
        raise Refused(INVALID_CONFIG, f"topics have no configuration here yet: {names}")
    wanted = topic.num_partitions
    if wanted == DEFAULT:
        wanted = session.front.options.partitions
    if wanted < 1:
        raise Refused(INVALID_PARTITIONS, "a topic has at least one partition")
    return wanted


async def on_delete_topics(session: KafkaSession, asked: Asked) -> DeleteTopicsResponse:
    request = asked.request
    assert isinstance(request, DeleteTopicsRequest)
    return DeleteTopicsResponse(
        responses=[await _deleted(session, name) for name in request.topic_names]
    )


async def _deleted(session: KafkaSession, text: str) -> DeletedTopic:
    """With all that hangs on it, as Kafka's clients expect."""
    told = DeletedTopic(name=text, error_code=NONE)
    broker = session.broker
    try:
        name = TopicName.parse(text)
        if await broker.catalog.partitions(name):
            await administration.delete_partitioned(broker, name, force=True)
        else:
            await administration.delete_topic(broker, name, force=True)
    except BrokerError as error:
        told.error_code, told.error_message = code_of(error), str(error)
    return told


async def on_create_partitions(session: KafkaSession, asked: Asked) -> CreatePartitionsResponse:
    request = asked.request
    assert isinstance(request, CreatePartitionsRequest)
    return CreatePartitionsResponse(
        results=[
            await _enlarged(session, topic, for_real=not request.validate_only)
            for topic in request.topics
        ]
    )


async def _enlarged(
    session: KafkaSession, topic: CreatePartitionsTopic, *, for_real: bool
) -> CreatedPartitionsTopic:
    told = CreatedPartitionsTopic(name=topic.name, error_code=NONE)
    broker = session.broker
    try:
        name = TopicName.parse(topic.name)
        present = len(await administration.partitions_of(broker, name))
        if topic.assignments:
            raise Refused(INVALID_REPLICA_ASSIGNMENT, "there is one broker to put partitions on")
        if topic.count <= present:
            raise Refused(INVALID_PARTITIONS, f"{topic.name} has {present} partitions already")
        if for_real:
            await administration.grow_partitioned(broker, name, topic.count)
    except BrokerError as error:
        told.error_code, told.error_message = code_of(error), str(error)
    except Refused as refused:
        told.error_code, told.error_message = refused.code, str(refused)
    return told


HANDLERS: Final[Mapping[int, Any]] = {
    19: on_create_topics,
    20: on_delete_topics,
    37: on_create_partitions,
}
