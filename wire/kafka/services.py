"""The services that all Kafka connections of a broker share: logs, groups, offsets, transactions.

Request handlers use them (`session/handlers.py`); `front.py` opens and runs them. This module does
not import the declarations of requests, which is slow.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.kafka import form
from magnetar.core.kernel.cooperation import ListLock
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.quotas.store import StoredQuotas
from magnetar.core.quotas.usage import QuotaUsage
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.sinks import Sinks
from magnetar.wire.kafka.configs import MAX_MESSAGE_BYTES, RETENTION_MS
from magnetar.wire.kafka.groups.classic.store import MemberStore
from magnetar.wire.kafka.groups.consumer.lookups import Lookups
from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
from magnetar.wire.kafka.groups.expiry import Expiry
from magnetar.wire.kafka.groups.group_configs import GroupConfigs
from magnetar.wire.kafka.groups.group_records import GroupRecords
from magnetar.wire.kafka.groups.offset_commits import OffsetCommits
from magnetar.wire.kafka.groups.offsets import Offsets
from magnetar.wire.kafka.groups.subscriptions import Subscriptions
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.kafka.partition.inspectors import Inspectors
from magnetar.wire.kafka.partition.logs import Logs

INSPECTORS_MAX: Final = 2
"""Batches that threads check concurrently; each may have its records in memory."""
TRANSACTIONS: Final = "/magnetar/kafka/transactions"
SINKS: Final = "/magnetar/sinks"
PRODUCER_IDS: Final = "/magnetar/kafka/producer-ids"
CLUSTER_ID: Final = "/magnetar/kafka/cluster-id"


class KafkaServices:
    """See the module's docstring."""

    def __init__(self, broker: Broker, options: KafkaOptions) -> None:
        self.broker = broker
        self.options = options
        self.defaults: Mapping[str, str] = {
            RETENTION_MS: str(options.retention_ms),
            MAX_MESSAGE_BYTES: str(options.batch_bytes_max),
        }
        """Defaults of topic configs that an operator can set."""
        self.cluster_id = ""
        """Known once `open` has returned."""
        self.logs = Logs(broker, self.defaults, options.message_bytes_max)
        self.inspectors = Inspectors(broker.clock, INSPECTORS_MAX)
        self.lookups = Lookups(broker)
        self.lists = ListLock()
        self.quotas = QuotaUsage(broker.clock)
        self.stored_quotas = StoredQuotas(broker.metadata, self.quotas)
        self.group_records = GroupRecords(broker.metadata, broker.ownership)
        self.group_configs = GroupConfigs(broker.metadata, options.groups)
        self.member_store = MemberStore(broker.metadata, broker.ownership)
        self.groups = GroupCoordinator(
            broker.clock,
            options.groups,
            self.group_records,
            self.member_store,
            self.group_configs,
            self._forget_if_unused,
        )
        self.subscriptions = Subscriptions(broker)
        self.offsets = Offsets(broker, self.logs, self.group_records)
        self.commits = OffsetCommits(self.groups, self.offsets)
        self.expiry = Expiry(
            self.groups,
            self.group_records,
            self.offsets,
            self.subscriptions,
            broker.clock,
            options.groups,
        )
        self.transactions = TransactionCoordinator(
            broker, TRANSACTIONS, form, self.commits.commit_pending
        )
        self.sinks = Sinks(
            broker,
            SINKS,
            self.transactions,
            partial(broker.metadata.next, PRODUCER_IDS),
            options.transaction_ms_max,
        )

    async def open(self) -> None:
        """Load the stored state that this broker owns."""
        metadata = self.broker.metadata
        if await metadata.get(CLUSTER_ID) is None:
            with suppress(AlreadyExists):  # another broker was first
                made = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=")
                await metadata.put(CLUSTER_ID, made, ABSENT)
        found = await metadata.get(CLUSTER_ID)
        assert found is not None, "it is never deleted"
        self.cluster_id = found.value.decode()
        await self.stored_quotas.open()
        await self.transactions.open()
        await self.sinks.open()
        await self.group_configs.open()
        await self.groups.open()

    async def run(self) -> None:
        """Run the background work until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.member_store.run)
            nursery.start_soon(self.groups.run)
            nursery.start_soon(self.stored_quotas.run)
            nursery.start_soon(self.transactions.run, self.options.transactional_id_ms_max)
            nursery.start_soon(self.sinks.run, self.options.transactional_id_ms_max)
            nursery.start_soon(self.expiry.run)

    async def _forget_if_unused(self, group: str) -> None:
        await self.expiry.forget_if_unused(group)
