"""LOOKUP, PARTITIONED_METADATA and GET_TOPICS_OF_NAMESPACE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.broker.topic_list import topics_of
from magnetar.core.broker.topic_watches import names_hash
from magnetar.core.cluster.ownership import Peer
from magnetar.core.kernel.cooperation import ListLock
from magnetar.core.kernel.errors import (
    InvalidName,
    NamespaceNotFound,
    NotOwned,
    NotReady,
    Overloaded,
    TopicNotFound,
)
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.wire.pulsar import events, replies

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.options import PulsarOptions
    from magnetar.wire.pulsar.session.requests import RequestQueue


def topic_name(text: str) -> TopicName:
    """Parse the name of a topic as clients send it."""
    if not text:
        raise InvalidName("the name of a topic must not be empty")
    return TopicName.parse(text)


class LookupLimit:
    """How many lookups may be under way, of all connections of a front."""

    __slots__ = ("_count", "_max", "lists")

    def __init__(self, count_max: int) -> None:
        self._count, self._max = 0, count_max
        self.lists = ListLock()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """While one is answered. Clients that are refused try again later, and give up when that
        happens too often (`maxNumberOfRejectedRequestPerConnection` of `ClientBuilder.java`).
        """
        if self._count >= self._max:
            raise Overloaded("too many lookups are under way")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


class LookupHandlers:
    """LOOKUP, PARTITIONED_METADATA, GET_TOPICS_OF_NAMESPACE."""

    __slots__ = ("_broker", "_client", "_limit", "_options", "_requests")

    def __init__(
        self,
        client: PulsarClient,
        broker: Broker,
        requests: RequestQueue,
        limit: LookupLimit,
        options: PulsarOptions,
    ) -> None:
        self._client = client
        self._broker = broker
        self._requests = requests
        self._limit = limit
        self._options = options

    async def on_lookup(self, event: events.Lookup) -> None:
        """Answer with the broker that serves the topic: this one, or another.

        For another one the answer is `Redirect` with `authoritative` set: the client repeats its
        lookup there, and that broker does not redirect it again. Apache's broker answers `Connect`
        for an owner that it knows (`TopicLookupBase.java` of 4.2): a round trip less, but its
        knowledge may be out of date.
        """
        with self._limit.one_more():
            name = topic_name(event.topic)
            if event.listener_name:
                raise NotReady(f"the broker do not have {event.listener_name} listener")
            if not await self._broker.catalog.has_namespace(name.namespace):
                raise NamespaceNotFound(f"namespace {name.namespace} does not exist")
            owner = await self._broker.ownership.topic(name)
        if owner is not None:
            elsewhere = _address_of(name, owner)
            self._client.reply(replies.lookup_redirect(event.request_id, elsewhere, True))
            return
        address, stay = self._options.address, self._options.through_service_url
        self._client.reply(replies.lookup_connect(event.request_id, address, stay))

    async def on_partitioned_metadata(self, event: events.PartitionedMetadata) -> None:
        with self._limit.one_more():
            name = topic_name(event.topic)
            if not await self._broker.catalog.has_namespace(name.namespace):
                raise TopicNotFound(f"namespace {name.namespace} does not exist")
            partitions = await self._broker.partitions_or_create(name, create=event.create)
        self._client.reply(replies.partitioned_metadata(event.request_id, partitions))

    async def on_topics_of_namespace(self, event: events.TopicsOfNamespace) -> None:
        """List all topics of a namespace, without applying the client's pattern. A missing
        namespace has none, as on Apache's broker: a pattern consumer may wait for its namespace.

        A regular expression from a client could run for ever on the loop. Every client filters
        the list itself unless the response says that the broker has.
        """
        client = self._client
        async with self._requests.one_list:
            await self._limit.lists.make(
                client, lambda: client.writable.wait, partial(self._reply_topics, event)
            )

    async def _reply_topics(self, event: events.TopicsOfNamespace) -> None:
        namespace = NamespaceName.parse(event.namespace)
        known = await self._broker.catalog.has_namespace(namespace)
        names = await topics_of(self._broker, namespace) if known else []
        if event.mode is not events.TopicsMode.ALL:
            persistent = event.mode is events.TopicsMode.PERSISTENT
            names = [name for name in names if TopicName.parse(name).persistent is persistent]
        digest = topics_hash(names)
        changed = digest != event.topics_hash
        self._client.reply_large(
            replies.topics_of_namespace(
                event.request_id, names if changed else (), digest, filtered=False, changed=changed
            )
        )


def _address_of(name: TopicName, peer: Peer) -> replies.Address:
    plain, secure = peer.addresses.get("pulsar"), peer.addresses.get("pulsar_tls")
    if not plain and not secure:
        raise NotOwned(f"topic {name} is served by a broker without a listener for Pulsar")
    return replies.Address(
        f"pulsar://{plain}" if plain else "", f"pulsar+ssl://{secure}" if secure else ""
    )


def topics_hash(names: list[str]) -> str:
    """The hash by which clients see whether a list has changed."""
    return names_hash(sorted(names))


HANDLERS: Final[Mapping[type, Any]] = {
    events.Lookup: LookupHandlers.on_lookup,
    events.PartitionedMetadata: LookupHandlers.on_partitioned_metadata,
    events.TopicsOfNamespace: LookupHandlers.on_topics_of_namespace,
}
