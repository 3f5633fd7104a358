"""Finding topics: where one is served, how many partitions it has, which there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from magnetar.core.broker.topic_list import topics_of
from magnetar.core.cluster.ownership import Peer
from magnetar.core.kernel.checksum import crc32c
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
    from magnetar.wire.pulsar.session.session import PulsarSession


Asked = TypeVar("Asked")


def topic_name(text: str) -> TopicName:
    """Read a name as clients send it."""
    if not text:
        raise InvalidName("the name of a topic must not be empty")
    return TopicName.parse(text)


class LookupLimit:
    """How many questions are being answered, of all connections of a front."""

    __slots__ = ("_count", "_max", "lists")

    def __init__(self, count_max: int) -> None:
        self._count, self._max = 0, count_max
        self.lists = ListLock()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """For as long as an answer takes; clients try again later, or give up when refused too
        often.
        """
        if self._count >= self._max:
            raise Overloaded("too many lookups are under way")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


def counted(
    handler: Callable[[PulsarSession, Asked], Awaitable[None]],
) -> Callable[[PulsarSession, Asked], Awaitable[None]]:
    """A handler that counts among those under way."""

    async def answer(session: PulsarSession, event: Asked) -> None:
        with session.lookups.one_more():
            await handler(session, event)

    return answer


async def on_lookup(session: PulsarSession, event: events.Lookup) -> None:
    """Say where the topic is served: here, or by which broker.

    The client asks the owner again (`Redirect`), with `authoritative` set, so that it does not
    send the client on. Apache's broker names an owner that it knows with `Connect`
    (`TopicLookupBase.java` of 4.2), which saves a round trip and trusts what may be out of date.
    """
    name = topic_name(event.topic)
    if event.listener_name:
        raise NotReady(f"the broker do not have {event.listener_name} listener")
    if not await session.broker.catalog.has_namespace(name.namespace):
        raise NamespaceNotFound(f"namespace {name.namespace} does not exist")
    options = session.options
    owner = await session.broker.ownership.topic(name)
    if owner is not None:
        session.reply(replies.lookup_redirect(event.request_id, _address_of(name, owner), True))
        return
    session.reply(
        replies.lookup_connect(event.request_id, options.address, options.through_service_url)
    )


def _address_of(name: TopicName, peer: Peer) -> replies.Address:
    plain, secure = peer.addresses.get("pulsar"), peer.addresses.get("pulsar_tls")
    if not plain and not secure:
        raise NotOwned(f"topic {name} is served by a broker without a listener for Pulsar")
    return replies.Address(
        f"pulsar://{plain}" if plain else "", f"pulsar+ssl://{secure}" if secure else ""
    )


async def on_partitioned_metadata(
    session: PulsarSession, event: events.PartitionedMetadata
) -> None:
    name = topic_name(event.topic)
    if not await session.broker.catalog.has_namespace(name.namespace):
        raise TopicNotFound(f"namespace {name.namespace} does not exist")
    partitions = await session.broker.partitions_or_create(name, create=event.create)
    session.reply(replies.partitioned_metadata(event.request_id, partitions))


async def on_topics_of_namespace(session: PulsarSession, event: events.TopicsOfNamespace) -> None:
    """All of them: the client applies its pattern itself. A namespace that is not there has none,
    as on Apache's broker: a consumer that waits for topics of a pattern may wait for their
    namespace too.

    Patterns are the client's own and may take for ever to match here, on the one loop; every client
    filters what it gets unless the response says that this was done.
    """
    async with session.requests.one_list:
        await session.lookups.lists.make(
            session, lambda: session.room.wait, partial(_tell_topics, session, event)
        )


async def _tell_topics(session: PulsarSession, event: events.TopicsOfNamespace) -> None:
    namespace = NamespaceName.parse(event.namespace)
    known = await session.broker.catalog.has_namespace(namespace)
    names = await topics_of(session.broker, namespace) if known else []
    if event.mode is not events.TopicsMode.ALL:
        persistent = event.mode is events.TopicsMode.PERSISTENT
        names = [name for name in names if TopicName.parse(name).persistent is persistent]
    digest = topics_hash(names)
    changed = digest != event.topics_hash
    session.reply_large(
        replies.topics_of_namespace(
            event.request_id, names if changed else (), digest, filtered=False, changed=changed
        )
    )


def topics_hash(names: list[str]) -> str:
    """What clients compare to see whether a list changed: CRC32C, its bytes least first
    (`topics/TopicList.java` of pulsar-common).
    """
    return crc32c(",".join(sorted(names)).encode()).to_bytes(4, "little").hex()


HANDLERS: Final[Mapping[type, Any]] = {
    events.Lookup: counted(on_lookup),
    events.PartitionedMetadata: counted(on_partitioned_metadata),
    events.TopicsOfNamespace: on_topics_of_namespace,
}
