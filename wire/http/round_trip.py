"""The health check: sends a message to storage and back to a reader, or reports why it failed.

The message takes the usual path: the check loads its own topic, publishes and syncs the message,
dispatches it to a reader, and reads it again from its ledger. The topic is a system topic, so no
listing shows it, and it is deleted when there has been no check for a while.

The check runs in the broker's nursery and not in the request's, because a hanging storage call
cannot be cancelled; a request waits a limited time for it.

Invariant: one trip runs at a time, however many requests wait for it. While a trip hangs, every
later check fails with it, and no new one starts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import AlreadyExists, BrokerError, Corrupted, NotAllowed, NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.kernel.varints import varint
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.consumer import ConsumerRequest
from magnetar.core.topic.subscription.subscription import SubscriptionType

TOPIC: Final = TopicName.parse("persistent://pulsar/system/__healthcheck")
SECONDS_MAX: Final = 10.0
"""A check without a result after this time has failed."""
PERMITS: Final = 1_000
"""Messages that a reader accepts: its own, and late ones of earlier trips."""
NAME: Final = b"healthcheck"


class HealthCheck:
    """See the module's docstring. One per server."""

    def __init__(self, seconds_max: float = SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._trip: Trip | None = None
        self._trips = 0

    async def trouble(self, broker: Broker) -> str | None:
        """Why a message did not come back; None if it did."""
        trip = self._trip
        if trip is None or trip.over.is_set():
            self._trips += 1
            trip = self._trip = Trip(self._trips)
            broker.spawn(trip.run, broker)
        with trio.move_on_after(self._seconds_max):
            await trip.over.wait()
            return trip.failure
        return f"storage has not answered within {self._seconds_max:g} s"


class Trip:
    """One message, there and back. It is also the reader's sink."""

    congested = False

    def __init__(self, number: int) -> None:
        self.over = trio.Event()
        self.failure: str | None = None
        self._name = f"healthcheck-{number}"
        self._message = b""
        self._position: Position | None = None
        self._error: BrokerError | None = None
        self._delivered = False
        self._outcome = trio.Event()
        """Set when the message is stored and delivered, or has failed."""

    async def run(self, broker: Broker) -> None:
        """Make the trip; `failure` then has its error, if any."""
        try:
            await self._go(await _topic(broker), broker.clock.wall_ms())
        except BrokerError as error:
            self.failure = str(error)
        finally:
            self.over.set()

    async def _go(self, topic: PersistentTopic, now_ms: int) -> None:
        self._message = message(self._name.encode(), now_ms)
        subscription = topic.reader(self._name, topic.ledger.chain.confirmed)
        request = ConsumerRequest(self._name)
        reader = topic.attach(subscription, 0, request, SubscriptionType.EXCLUSIVE, self)
        try:
            subscription.flow(reader, PERMITS)
            topic.publish([self._message], None, self._stored)
            await self._outcome.wait()
        finally:
            topic.detach(reader)
        if self._error is not None:
            raise self._error
        assert self._position is not None
        stored = (await topic.ledger.read(self._position, 1, 1)).payloads[0]
        if not stored.endswith(self._message):
            raise Corrupted("storage returns another message than was stored")

    def _stored(self, result: Position | BrokerError) -> None:
        if isinstance(result, BrokerError):
            self._error = result
        else:
            self._position = result
        self._check()

    def _check(self) -> None:
        if self._error is not None or (self._delivered and self._position is not None):
            self._outcome.set()

    # -- the reader's sink --------------------------------------------------------------------

    def deliver(
        self,
        part: Slice,
        _redeliveries: Sequence[int] | None,
        _partial: Mapping[int, int] | None,
    ) -> None:
        """Look for the message; entries read from a ledger have the broker's header before it."""
        self._delivered = self._delivered or any(
            each.endswith(self._message) for each in part.payloads
        )
        self._check()

    def activity(self, active: bool) -> None:
        """Do nothing: the only reader is always active."""

    def end_of_topic(self) -> None:
        self._error = NotAllowed(f"{TOPIC} is terminated")
        self._check()

    def closed_by_broker(self) -> None:
        self._error = NotReady(f"{TOPIC} was unloaded meanwhile")
        self._check()


async def _topic(broker: Broker) -> PersistentTopic:
    """The topic, in a namespace of the broker's own that the first check creates."""
    catalog = broker.catalog
    if not await catalog.has_namespace(TOPIC.namespace):
        tenant = Tenant(allowed_clusters=[catalog.cluster])
        with suppress(AlreadyExists):  # the tenant may have other uses
            await catalog.put_tenant(TOPIC.tenant, tenant, create=True)
        await catalog.create_namespace(TOPIC.namespace, NamespacePolicies())
    topic = await broker.topic(TOPIC, by_order=True)
    assert topic.stored is not None, "by its name"
    return topic.stored


def message(payload: bytes, now_ms: int) -> bytes:
    """The message in a producer's format: checksum, metadata (name, sequence, time), payload."""
    metadata = bytes((0x0A, len(NAME))) + NAME + b"\x10\x00\x18" + varint(now_ms)
    body = struct.pack(">I", len(metadata)) + metadata + payload
    return b"\x0e\x01" + struct.pack(">I", crc32c(body)) + body
