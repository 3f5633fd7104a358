"""The table of request handlers, which all connections of one front share.

A handler gets the decoded request and its context (`context.py`). Its constructor names the
services that it uses; they are passed here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka.errors import KafkaRefusal
from magnetar.wire.kafka.session import versions
from magnetar.wire.kafka.session.audited import audited
from magnetar.wire.kafka.session.configs.acls import AclHandlers
from magnetar.wire.kafka.session.configs.configs import ConfigHandlers
from magnetar.wire.kafka.session.configs.quotas import QuotaHandlers
from magnetar.wire.kafka.session.configs.resources import ConfigResources
from magnetar.wire.kafka.session.configs.scram import ScramHandlers
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
from magnetar.wire.kafka.session.splitting import Split, split, unknown_ids
from magnetar.wire.kafka.session.topics.brokers import Brokers
from magnetar.wire.kafka.session.topics.log_dirs import LogDirHandlers
from magnetar.wire.kafka.session.topics.metadata import MetadataHandlers
from magnetar.wire.kafka.session.topics.quorum import QuorumHandlers
from magnetar.wire.kafka.session.topics.topic_changes import TopicChangeHandlers
from magnetar.wire.kafka.session.transactions.transaction_tools import TransactionToolHandlers
from magnetar.wire.kafka.session.transactions.transactions import TransactionHandlers
from magnetar.wire.kafka.session.transactions.txn_offset_commit import TxnOffsetCommitHandlers

if TYPE_CHECKING:
    from magnetar.wire.kafka.services import KafkaServices
    from magnetar.wire.kafka.wire import KafkaRequest


class RequestHandlers:
    """See the module's docstring."""

    def __init__(self, services: KafkaServices) -> None:
        self._services = services
        self.access: Final = services.broker.access
        self.quotas: Final = services.quotas
        self.clock: Final = services.broker.clock
        self.spawn: Final = services.broker.spawn
        self.fetch: Final = FetchHandlers(
            services.logs, services.group_records, services.broker.clock
        )
        by_key: Mapping[int, Handler] = {
            **versions.HANDLERS,
            **AclHandlers(services.broker).handlers(),
            **ScramHandlers(services.broker.metadata).handlers(),
            **QuotaHandlers(services.quotas, services.stored_quotas).handlers(),
            **SaslHandlers(self.access, services.broker.clock).handlers(),
            **self.fetch.handlers(),
            **_of_topics(services),
            **_of_groups(services),
            **_of_configs(services),
            **_of_transactions(services),
        }
        self.by_key: Final = audited(by_key, self.access)
        """By API key. Produce is not in this table: see `produce`."""

    def names_unknown(self, request: KafkaRequest) -> bool:
        """Whether the rights of a request depend on topics that are known by their ids alone."""
        if self.access.judge is None:
            return False
        return bool(unknown_ids(self._services.logs, request.key, request.request))

    async def look_up_ids(self, request: KafkaRequest) -> None:
        """Look the names of these topics up; ids without a topic stay unknown."""
        logs = self._services.logs
        for topic_id in unknown_ids(logs, request.key, request.request):
            with suppress(BrokerError, KafkaRefusal):
                await logs.name_of(topic_id)

    def split(self, caller: Caller, request: KafkaRequest) -> Split | None:
        """What the client may have of a request; None for all of it."""
        if self.access.judge is None or request.request is None:
            return None
        found = split(caller, self._services.logs, request.key, request.request)
        return None if found.request is request.request else found

    def produce(self, caller: Caller, replies: Replies) -> ProduceHandler:
        """The Produce handler of one connection."""
        services = self._services
        return ProduceHandler(
            services.broker,
            services.logs,
            services.transactions,
            services.inspectors,
            caller,
            replies,
        )


def _brokers(services: KafkaServices) -> Brokers:
    return Brokers(services.options.node_id, services.cluster_id, services.broker.ownership)


def _of_topics(services: KafkaServices) -> Mapping[int, Handler]:
    broker, logs, records, options = (
        services.broker,
        services.logs,
        services.group_records,
        services.options,
    )
    metadata = MetadataHandlers(
        broker, _brokers(services), logs, records, options, services.defaults
    )
    return {
        **metadata.handlers(),
        **TopicChangeHandlers(broker, logs, options, services.defaults).handlers(),
        **LogDirHandlers(broker, records, options).handlers(),
        **QuorumHandlers(options, broker.clock).handlers(),
        **ListOffsetsHandlers(logs, records).handlers(),
        **DeleteRecordsHandlers(logs).handlers(),
    }


def _of_groups(services: KafkaServices) -> Mapping[int, Handler]:
    groups, offsets, subscriptions = services.groups, services.offsets, services.subscriptions
    lookups, records = services.lookups, services.group_records
    commits = OffsetHandlers(
        services.broker,
        groups,
        services.commits,
        subscriptions,
        services.logs,
        services.transactions,
    )
    tools = GroupToolHandlers(
        groups,
        offsets,
        subscriptions,
        records,
        services.member_store,
        services.expiry.forget_if_unused,
    )
    classic = ClassicGroupHandlers(_brokers(services), groups, lookups, services.options.groups)
    return {
        **classic.handlers(),
        **commits.handlers(),
        **ConsumerGroupHandlers(groups, lookups, records).handlers(),
        **tools.handlers(),
    }


def _of_configs(services: KafkaServices) -> Mapping[int, Handler]:
    resources = ConfigResources(
        services.broker,
        services.groups,
        services.group_records,
        services.group_configs,
        services.options,
        services.defaults,
    )
    return ConfigHandlers(resources, services.lists).handlers()


def _of_transactions(services: KafkaServices) -> Mapping[int, Handler]:
    coordinator, logs, broker = services.transactions, services.logs, services.broker
    timeout_ms_max = services.options.transaction_ms_max
    transactions = TransactionHandlers(coordinator, logs, broker.metadata, timeout_ms_max)
    tools = TransactionToolHandlers(coordinator, logs, services.group_records, broker.clock)
    return {
        **transactions.handlers(),
        **TxnOffsetCommitHandlers(
            coordinator, services.groups, services.offsets, broker.clock
        ).handlers(),
        **tools.handlers(),
    }
