"""Which topics and partitions a WebSocket is attached to, and those that come later. Pure.

    one topic      its partitions; the broker is asked again every minute whether there are more
    several        those of each (`topics` of /ws/v3)
    a pattern      the topics of a namespace that match it (`topicsPattern`): the broker is asked to
                   tell which come. One that goes is closed by the broker like any other.

Invariant: a name is handed out once, until the broker says that it has come again.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.names import partition_name
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.replies import Type
from magnetar.wire.pulsar.websocket.endpoint import WebSocketEndpoint
from magnetar.wire.pulsar.websocket.exchange import DialogueExchange

REQUEST_ID: Final = 1 << 21
"""Of the first topic; those of what is attached are lower."""
WATCHER_ID: Final = 1
HEARD: Final = (
    Type.PARTITIONED_METADATA_RESPONSE,
    Type.WATCH_TOPIC_LIST_SUCCESS,
    Type.WATCH_TOPIC_UPDATE,
)
"""Commands of the broker that `hear` is for."""


class AttachedLogs:
    """See the module's docstring."""

    __slots__ = ("_counts", "_endpoint", "_exchange", "_is_complete")

    def __init__(self, endpoint: WebSocketEndpoint, exchange: DialogueExchange) -> None:
        self._endpoint = endpoint
        self._exchange = exchange
        self._counts: list[int | None] = [None] * len(endpoint.topics)
        """Partitions of each topic; 0 for a topic without, None before it is known."""
        self._is_complete = False

    @property
    def are_numbered(self) -> bool:
        """Whether a message has to say by a number which of them it is of."""
        return self._endpoint.is_of_several or any(self._counts)

    @property
    def may_grow(self) -> bool:
        """Whether the broker is to be asked again."""
        return not self._endpoint.pattern and any(self._counts)

    def ask(self) -> None:
        """Ask the broker what there is."""
        endpoint = self._endpoint
        if endpoint.pattern:
            said = pb.CommandWatchTopicList(
                request_id=REQUEST_ID,
                watcher_id=WATCHER_ID,
                namespace=str(endpoint.topic.namespace),
                topics_pattern=endpoint.pattern,
            )
            self._exchange.command(Type.WATCH_TOPIC_LIST, said)
            return
        for number, topic in enumerate(endpoint.topics):
            asked = pb.CommandPartitionedTopicMetadata(
                topic=topic.full, request_id=REQUEST_ID + number
            )
            self._exchange.command(Type.PARTITIONED_METADATA, asked)

    def hear(self, command: pb.BaseCommand) -> list[str] | None:
        """What the broker says; names to attach to, or None if there are none yet."""
        if command.type == Type.WATCH_TOPIC_LIST_SUCCESS:
            return list(command.watch_topic_list_success.topic)
        if command.type == Type.WATCH_TOPIC_UPDATE:
            return list(command.watch_topic_update.new_topics) or None
        found = command.partitioned_metadata_response
        if found.response == pb.CommandPartitionedTopicMetadataResponse.FAILED:
            if not self._is_complete:  # a topic that is gone closes what is attached
                self._exchange.refused(found.error, found.message)
            return None
        return self._note(found.request_id - REQUEST_ID, found.partitions)

    def _note(self, number: int, count: int) -> list[str] | None:
        before = self._counts[number]
        self._counts[number] = max(count, before or 0)
        if self._is_complete:
            return self._names_of(number, before or 0) or None if before else None
        if None in self._counts:
            return None
        self._is_complete = True
        return [name for each in range(len(self._counts)) for name in self._names_of(each, 0)]

    def _names_of(self, number: int, first: int) -> list[str]:
        """The partitions of a topic from one on, or the topic."""
        full, count = self._endpoint.topics[number].full, self._counts[number] or 0
        return [partition_name(full, index) for index in range(first, count)] if count else [full]
