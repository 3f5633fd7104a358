"""Who answers which kind of request, for all connections of one front.

Each handler gets the request as it was decoded and its context (`context.py`); what it needs of the
server is named in its constructor, and is put together here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from magnetar.wire.kafka.session import versions
from magnetar.wire.kafka.session.configs import acls
from magnetar.wire.kafka.session.configs.configs import ConfigHandlers
from magnetar.wire.kafka.session.configs.resources import ConfigResources
from magnetar.wire.kafka.session.context import Caller, Handler
from magnetar.wire.kafka.session.fetch.delete_records import DeleteRecordsHandlers
from magnetar.wire.kafka.session.fetch.fetch import FetchHandlers
from magnetar.wire.kafka.session.fetch.list_offsets import ListOffsetsHandlers
from magnetar.wire.kafka.session.groups.classic import ClassicGroupHandlers
from magnetar.wire.kafka.session.groups.consumer import ConsumerGroupHandlers
from magnetar.wire.kafka.session.groups.group_tools import GroupToolHandlers
from magnetar.wire.kafka.session.groups.offsets import OffsetHandlers
from magnetar.wire.kafka.session.produce.handler import ProduceHandler, Replies
from magnetar.wire.kafka.session.sasl import SaslHandlers
from magnetar.wire.kafka.session.topics.brokers import Brokers
from magnetar.wire.kafka.session.topics.log_dirs import LogDirHandlers
from magnetar.wire.kafka.session.topics.metadata import MetadataHandlers
from magnetar.wire.kafka.session.topics.quorum import QuorumHandlers
from magnetar.wire.kafka.session.topics.topic_changes import TopicChangeHandlers
from magnetar.wire.kafka.session.transactions.transaction_tools import TransactionToolHandlers
from magnetar.wire.kafka.session.transactions.transactions import TransactionHandlers
from magnetar.wire.kafka.session.transactions.txn_offset_commit import TxnOffsetCommitHandlers

if TYPE_CHECKING:
    from magnetar.wire.kafka.front import KafkaFront


class RequestHandlers:
    """See the module's docstring."""

    def __init__(self, front: KafkaFront) -> None:
        self._front = front
        self.access: Final = front.broker.access
        self.spawn: Final = front.broker.spawn
        self.fetch: Final = FetchHandlers(front.logs, front.records, front.broker.clock)
        self.by_key: Final[Mapping[int, Handler]] = {
            **versions.HANDLERS,
            **acls.HANDLERS,
            **SaslHandlers(self.access).handlers(),
            **self.fetch.handlers(),
            **_of_topics(front),
            **_of_groups(front),
            **_of_configs(front),
            **_of_transactions(front),
        }
        """By kind of request. Produce is not among them: see `produce`."""

    def produce(self, caller: Caller, replies: Replies) -> ProduceHandler:
        """That of one connection."""
        front = self._front
        return ProduceHandler(
            front.broker, front.logs, front.coordinator, front.inspectors, caller, replies
        )


def _brokers(front: KafkaFront) -> Brokers:
    return Brokers(front.options.node_id, front.cluster_id, front.broker.ownership)


def _of_topics(front: KafkaFront) -> Mapping[int, Handler]:
    broker, logs, records, options = front.broker, front.logs, front.records, front.options
    metadata = MetadataHandlers(broker, _brokers(front), logs, records, options, front.defaults)
    return {
        **metadata.handlers(),
        **TopicChangeHandlers(broker, logs, options, front.defaults).handlers(),
        **LogDirHandlers(broker, records, options).handlers(),
        **QuorumHandlers(options, broker.clock).handlers(),
        **ListOffsetsHandlers(logs, records).handlers(),
        **DeleteRecordsHandlers(logs).handlers(),
    }


def _of_groups(front: KafkaFront) -> Mapping[int, Handler]:
    groups, offsets, subscriptions = front.groups, front.offsets, front.subscriptions
    lookups, records = front.lookups, front.records
    commits = OffsetHandlers(
        front.broker, groups, offsets, subscriptions, front.logs, front.coordinator
    )
    tools = GroupToolHandlers(
        groups, offsets, subscriptions, records, front.keeper, front.expiry.forget_if_unused
    )
    classic = ClassicGroupHandlers(_brokers(front), groups, lookups, front.options.groups)
    return {
        **classic.handlers(),
        **commits.handlers(),
        **ConsumerGroupHandlers(groups, lookups, records).handlers(),
        **tools.handlers(),
    }


def _of_configs(front: KafkaFront) -> Mapping[int, Handler]:
    resources = ConfigResources(
        front.broker,
        front.groups,
        front.records,
        front.configured,
        front.options,
        front.defaults,
    )
    return ConfigHandlers(resources, front.lists).handlers()


def _of_transactions(front: KafkaFront) -> Mapping[int, Handler]:
    coordinator, logs, broker = front.coordinator, front.logs, front.broker
    timeout_ms_max = front.options.transaction_ms_max
    transactions = TransactionHandlers(coordinator, logs, broker.metadata, timeout_ms_max)
    tools = TransactionToolHandlers(coordinator, logs, front.records, broker.clock)
    return {
        **transactions.handlers(),
        **TxnOffsetCommitHandlers(
            coordinator, front.groups, front.offsets, broker.clock
        ).handlers(),
        **tools.handlers(),
    }
