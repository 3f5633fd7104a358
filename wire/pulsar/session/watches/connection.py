"""WATCH_TOPIC_LIST and its CLOSE: the patterns that one connection watches (PIP-145).

A client asks once and is told of each change, instead of listing the namespace every minute. The
list is made and followed by `core/broker/topic_watches.py`; here are the client's side, and the
limits of one connection.

Invariants: a watcher that has lost its right is told nothing more, as one without it would not have
been accepted, also if that was while its list was made. A watcher that was closed before it had its
list is not answered: Java's client disconnects if it hears an error then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import Invalid, NotAllowed
from magnetar.core.kernel.names import DOMAINS, NamespaceName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session.needs import Need, allows
from magnetar.wire.pulsar.session.watches.watcher import ConnectionWatcher, HeldChanges

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.lookup import LookupLimit
    from magnetar.wire.pulsar.session.requests import RequestQueue

WATCHERS_MAX: Final = 1_000
"""Of one connection; a consumer of a pattern has one."""
PATTERNS_MAX: Final = 64
"""Of these, different ones: a quarter of what the server has room for."""


class ConnectionWatches:
    """WATCH_TOPIC_LIST, WATCH_TOPIC_LIST_CLOSE."""

    __slots__ = ("_broker", "_client", "_coming", "_held", "_limit", "_requests", "_watchers")

    def __init__(
        self, client: PulsarClient, broker: Broker, requests: RequestQueue, limit: LookupLimit
    ) -> None:
        self._client = client
        self._broker = broker
        self._requests = requests
        self._limit = limit
        self._watchers: dict[int, ConnectionWatcher] = {}
        self._held = HeldChanges()
        self._coming: set[tuple[int, int]] = set()
        """Watchers and requests that are not answered; a CLOSE removes those of its watcher."""

    def __len__(self) -> int:
        return len(self._watchers)

    def on_watch(self, event: events.WatchTopics) -> None:
        """Send the list of what matches, then its changes. An id that watches already is answered
        again: its client has had no answer in time, or compares its list with ours.
        """
        self._coming.add((event.watcher_id, event.request_id))
        self._requests.add(self._watch, event)

    async def _watch(self, event: events.WatchTopics) -> None:
        client, pattern = self._client, without_domain(event.pattern)
        namespace = NamespaceName.parse(event.namespace)
        try:
            async with self._requests.one_list:
                watcher = self._watchers.get(event.watcher_id)
                if watcher is None or watcher.asks != (namespace, pattern):
                    watcher = await self._begin(event, (namespace, pattern))
                await self._limit.lists.make(
                    client, lambda: client.writable.wait, partial(self._answer, event, watcher)
                )
        finally:
            self._coming.discard((event.watcher_id, event.request_id))

    def _is_wanted(self, event: events.WatchTopics, namespace: NamespaceName) -> bool:
        """Whether the client waits for an answer still; raises `Unauthorized` if it may not have
        it any more.
        """
        if (event.watcher_id, event.request_id) not in self._coming:
            return False
        self._client.check(*to_list(namespace))
        return True

    async def _begin(
        self, event: events.WatchTopics, asks: tuple[NamespaceName, str]
    ) -> ConnectionWatcher | None:
        """The new watcher; None if the client has closed it meanwhile."""
        watcher_id, watches = event.watcher_id, self._broker.topic_watches
        if not self._is_wanted(event, asks[0]):
            return None
        self._end(watcher_id)
        if len(self._watchers) >= WATCHERS_MAX:
            raise NotAllowed(f"a connection may watch at most {WATCHERS_MAX} patterns")
        patterns = {each.asks for each in self._watchers.values()}
        if asks not in patterns and len(patterns) >= PATTERNS_MAX:
            raise NotAllowed(f"a connection may watch at most {PATTERNS_MAX} different patterns")
        watcher = ConnectionWatcher(self._client, watcher_id, asks, self._held)
        try:
            found = await watches.watch(*asks, watcher)
        except Invalid as error:  # one that Java understands: it lists and filters itself
            raise NotAllowed(f"Unable to create topic list watcher: {error}") from error
        watcher.matching = found
        is_wanted = False
        try:
            is_wanted = self._is_wanted(event, asks[0])
        finally:
            if not is_wanted:
                watches.end(found, watcher)
        if not is_wanted:
            return None
        self._watchers[watcher_id] = watcher
        return watcher

    async def _answer(self, event: events.WatchTopics, watcher: ConnectionWatcher | None) -> None:
        """Send the list, unless the watcher has ended while its client received other answers."""
        if watcher is None or watcher.matching is None:
            return
        await watcher.matching.tell()
        if self._is_wanted(event, watcher.asks[0]):
            watcher.answer(event)

    def on_close(self, event: events.CloseWatch) -> None:
        given_up = [each for each in self._coming if each[0] == event.watcher_id]
        self._coming.difference_update(given_up)
        self._end(event.watcher_id)
        self._client.reply(replies.success(event.request_id))

    def _end(self, watcher_id: int) -> None:
        watcher = self._watchers.pop(watcher_id, None)
        if watcher is None:
            return
        watcher.forget()
        if watcher.matching is not None:
            self._broker.topic_watches.end(watcher.matching, watcher)

    def lose_rights(self) -> None:
        """End those whose client may not list the namespace any more."""
        for watcher_id, watcher in list(self._watchers.items()):
            if not allows(self._client, to_list(watcher.asks[0])):
                self._end(watcher_id)

    def relieved(self) -> None:
        """The client has received what it was sent."""
        for watcher in self._watchers.values():
            watcher.send()

    def detach_all(self) -> None:
        self._coming.clear()
        for watcher_id in list(self._watchers):
            self._end(watcher_id)


def to_list(namespace: NamespaceName) -> Need:
    return Action.DESCRIBE, ResourceType.NAMESPACE, str(namespace)


def without_domain(pattern: str) -> str:
    """A pattern as it is matched: without `persistent://`, behind a `^` perhaps
    (`TopicList.java`).
    """
    before, scheme, rest = pattern.partition("://")
    if scheme:
        for domain in sorted(DOMAINS, key=len, reverse=True):
            if before.endswith(domain):
                before = before.removesuffix(domain)
                break
        pattern = before + rest
    return pattern


HANDLERS: Final[Mapping[type, Any]] = {
    events.WatchTopics: ConnectionWatches.on_watch,
    events.CloseWatch: ConnectionWatches.on_close,
}
