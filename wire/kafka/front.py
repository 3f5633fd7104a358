"""The Kafka front: what all its connections share, and what an operator may turn.

The declarations of a protocol with seventy kinds of messages take 40 ms to import, a tenth of a
start. So they are imported once the server is up (`warm_up`), or when the first client connects,
whichever is sooner.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.kafka import form
from magnetar.core.kernel.cooperation import ListLock
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.kernel.spare_files import Lend
from magnetar.core.link.connection import Connection
from magnetar.core.link.front import Door, Listener, Refusal
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.transaction import PendingCommit
from magnetar.wire.kafka.addresses import Endpoint, parsed
from magnetar.wire.kafka.configs import BATCH_BYTES_MAX, MAX_MESSAGE_BYTES, RETENTION_MS
from magnetar.wire.kafka.groups.classic.store import MemberStore
from magnetar.wire.kafka.groups.consumer.lookups import Lookups
from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
from magnetar.wire.kafka.groups.expiry import Expiry
from magnetar.wire.kafka.groups.group_configs import GroupConfigs
from magnetar.wire.kafka.groups.group_records import GroupRecords
from magnetar.wire.kafka.groups.offsets import Offsets
from magnetar.wire.kafka.groups.options import GroupOptions
from magnetar.wire.kafka.groups.subscriptions import Subscriptions
from magnetar.wire.kafka.groups.task_order import TaskOrder
from magnetar.wire.kafka.partition.inspectors import Inspectors
from magnetar.wire.kafka.partition.logs import Logs

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.handlers import RequestHandlers
    from magnetar.wire.kafka.session.session import KafkaSession
    from magnetar.wire.kafka.wire import KafkaWire

INSPECTORS_MAX: Final = 2
"""Batches that are looked through in threads; each may have its records in memory."""
PARTS: Final = (
    "magnetar.wire.kafka.codec.declare",
    "magnetar.wire.kafka.codec.decoder",
    "magnetar.wire.kafka.codec.encoder",
    *(
        f"magnetar.wire.kafka.messages.{name}"
        for name in (
            "parts",
            "acls",
            "quorum",
            "basics",
            "records",
            "topics",
            "groups",
            "offsets",
            "transactions",
            "configs",
            "sasl",
            "consumer_groups",
        )
    ),
    "magnetar.wire.kafka.apis",
    "magnetar.wire.kafka.wire",
    "magnetar.wire.kafka.session.handlers",
    "magnetar.wire.kafka.session.session",
)
"""In an order in which none of them brings much along."""
TRANSACTIONS: Final = "/magnetar/kafka/transactions"
CLUSTER_ID: Final = "/magnetar/kafka/cluster-id"


def _unknown_room() -> tuple[int, int]:
    """Unknown."""
    return -1, -1


class KafkaOptions(Struct, frozen=True):
    """What an operator may turn, for all Kafka connections."""

    host: str = ""
    """Where clients are to connect; empty for the address they came by."""
    advertised: Mapping[str, str] = {}
    """Host and port instead of that, by listener."""
    node_id: int = 0
    partitions: int = 1
    """Of a topic that is auto-created."""
    batch_bytes_max: int = 1_048_588
    """Where a topic does not decide it."""
    message_bytes_max: int = BATCH_BYTES_MAX
    """Of an entry: Pulsar's clients learn this limit, and drop what is larger."""
    retention_ms: int = 604_800_000
    """Of topics that Kafka's clients make; -1 for ever."""
    transaction_ms_max: int = 900_000
    """What producers may choose."""
    transactional_id_ms_max: int = 604_800_000
    """Unused for so long, a transactional id is forgotten."""
    groups: GroupOptions = GroupOptions()
    data_dir: str = ""
    """The folder that DescribeLogDirs names."""
    room: Callable[[], tuple[int, int]] = _unknown_room
    """Bytes of that disk, and how many of them are free."""


class KafkaFront:
    """Makes wire and session of each fresh connection."""

    def __init__(
        self,
        broker: Broker,
        options: KafkaOptions,
        doors: Sequence[Door] = (),
        lend: Lend = nullcontext,
    ) -> None:
        self.broker = broker
        self._doors = doors
        self._lend = lend
        """Room for what is imported late."""
        self.options = options
        self.defaults: Mapping[str, str] = {
            RETENTION_MS: str(options.retention_ms),
            MAX_MESSAGE_BYTES: str(options.batch_bytes_max),
        }
        """Configs of topics that have not decided, as far as an operator may."""
        self.logs = Logs(broker, self.defaults, options.message_bytes_max)
        self.coordinator = TransactionCoordinator(broker, TRANSACTIONS, form, self._commit_pending)
        self.records = GroupRecords(broker.metadata, broker.ownership)
        self.keeper = MemberStore(broker.metadata, broker.ownership)
        self.configured = GroupConfigs(broker.metadata, options.groups)
        self.groups = GroupCoordinator(
            broker.clock,
            options.groups,
            self.records,
            self.keeper,
            self.configured,
            self._forget_if_unused,
        )
        self.lookups = Lookups(broker)
        self.subscriptions = Subscriptions(broker)
        self.offsets = Offsets(broker, self.logs, self.records)
        self.expiry = Expiry(
            self.groups,
            self.records,
            self.offsets,
            self.subscriptions,
            broker.clock,
            options.groups,
        )
        self.commit_turns = TaskOrder()
        self.inspectors = Inspectors(broker.clock, INSPECTORS_MAX)
        self.lists = ListLock()
        self.cluster_id = ""
        self._handlers: RequestHandlers | None = None
        """Made with the first session."""

    @property
    def listeners(self) -> Sequence[Listener]:
        """A connection too many is closed: the protocol has no answer to a request that was not
        sent, and clients back off from a connection that breaks (`reconnect.backoff.ms`).
        """
        return [Listener(door, self.listener(door.name), Refusal.CLOSED) for door in self._doors]

    def close(self) -> None:
        for door in self._doors:
            door.socket.close()

    async def open(self) -> None:
        """Know what is the same after each start."""
        metadata = self.broker.metadata
        if await metadata.get(CLUSTER_ID) is None:
            with suppress(AlreadyExists):  # another broker was first
                made = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=")
                await metadata.put(CLUSTER_ID, made, ABSENT)
        found = await metadata.get(CLUSTER_ID)
        assert found is not None, "it is never deleted"
        self.cluster_id = found.value.decode()
        await self.coordinator.open()
        await self.configured.open()
        await self.groups.open()

    async def _forget_if_unused(self, group: str) -> None:
        await self.expiry.forget_if_unused(group)

    async def _commit_pending(self, pending: Iterable[PendingCommit]) -> None:
        with self._lend():
            from magnetar.wire.kafka.session.transactions.txn_offset_commit import commit_pending

        await commit_pending(self.groups, self.offsets, self.commit_turns, pending)

    def listener(self, name: str) -> Callable[[Connection], tuple[KafkaWire, KafkaSession]]:
        """The protocol for one listener."""
        fixed = self.options.advertised.get(name)

        def made(connection: Connection) -> tuple[KafkaWire, KafkaSession]:
            with self._lend():
                from magnetar.wire.kafka.session.context import Caller
                from magnetar.wire.kafka.session.handlers import RequestHandlers
                from magnetar.wire.kafka.session.session import KafkaSession
                from magnetar.wire.kafka.wire import KafkaWire

            if fixed is not None:
                address = parsed(fixed)
            else:
                host, port = connection.reached_at
                address = Endpoint(self.options.host or host, port)
            if self._handlers is None:
                self._handlers = RequestHandlers(self)
            wire, caller = KafkaWire(), Caller(connection, address, name)
            return wire, KafkaSession(self._handlers, caller, wire)

        return made

    async def run(self) -> None:
        """Until cancelled: what goes on without connections."""
        await warm_up(self._lend)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keeper.run)
            nursery.start_soon(self.groups.run)
            nursery.start_soon(self.coordinator.run, self.options.transactional_id_ms_max)
            nursery.start_soon(self.expiry.run)


async def warm_up(lend: Lend = nullcontext) -> None:
    """Import what the first client would have to wait for, a little at a time."""
    for part in PARTS:
        with lend():
            import_module(part)
        await trio.lowlevel.checkpoint()
