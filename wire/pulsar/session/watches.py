"""WATCH_TOPIC_LIST and its CLOSE: the patterns that one connection watches (PIP-145).

A client asks once and is told of each change, instead of listing the namespace every minute. The
list is made and followed by `core/broker/topic_watches.py`; here are the client's side, and the
limits of one connection:

    asked      the client has no answer yet
    told       it has the list; a change is sent at once
    held back  it does not receive what it was sent: changes are collected, and sent when it does

Invariants: the changes of a watcher reach its client in order, and none is left out; a client with
`HELD_MAX` changes that it does not receive is disconnected. A watcher that has lost its right is
told nothing more, as one without it would not have been accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.errors import Invalid, NotAllowed
from magnetar.core.kernel.names import DOMAINS, NamespaceName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session.needs import Need, allows

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.broker.topic_watches import MatchingTopics
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.lookup import LookupLimit
    from magnetar.wire.pulsar.session.requests import RequestQueue

WATCHERS_MAX: Final = 1_000
"""Of one connection; a consumer of a pattern has one."""
PATTERN_LETTERS_MAX: Final = 250
"""Apache's broker accepts 50 (`subscriptionPatternMaxLength`); beyond it clients poll."""
HELD_MAX: Final = 20_000
NAMES_PER_UPDATE: Final = 5_000
"""A frame has at most so many names, half a megabyte or so."""


class ConnectionWatches:
    """WATCH_TOPIC_LIST, WATCH_TOPIC_LIST_CLOSE."""

    __slots__ = ("_broker", "_client", "_limit", "_requests", "_watchers")

    def __init__(
        self, client: PulsarClient, broker: Broker, requests: RequestQueue, limit: LookupLimit
    ) -> None:
        self._client = client
        self._broker = broker
        self._requests = requests
        self._limit = limit
        self._watchers: dict[int, ConnectionWatcher] = {}

    def __len__(self) -> int:
        return len(self._watchers)

    async def on_watch(self, event: events.WatchTopics) -> None:
        """Send the list of what matches, then its changes. An id that watches already is answered
        again: its client has had no answer in time, or compares its list with ours.
        """
        client, pattern = self._client, without_domain(event.pattern)
        namespace = NamespaceName.parse(event.namespace)
        async with self._requests.one_list:
            watcher = self._watchers.get(event.watcher_id)
            if watcher is None or watcher.asks != (namespace, pattern):
                self._end(event.watcher_id)
                watcher = await self._begin(event.watcher_id, namespace, pattern)
            await self._limit.lists.make(
                client, lambda: client.writable.wait, partial(watcher.answer, event)
            )
            if client.gone:
                self.detach_all()

    async def _begin(
        self, watcher_id: int, namespace: NamespaceName, pattern: str
    ) -> ConnectionWatcher:
        if len(self._watchers) >= WATCHERS_MAX:
            raise NotAllowed(f"a connection may watch at most {WATCHERS_MAX} patterns")
        watcher = ConnectionWatcher(self._client, watcher_id, (namespace, pattern))
        try:
            found = await self._broker.topic_watches.watch(namespace, pattern, watcher)
        except Invalid as error:  # one that Java understands: it lists and filters itself
            raise NotAllowed(f"Unable to create topic list watcher: {error}") from error
        watcher.matching = found
        self._watchers[watcher_id] = watcher
        return watcher

    def on_close(self, event: events.CloseWatch) -> None:
        self._end(event.watcher_id)
        self._client.reply(replies.success(event.request_id))

    def _end(self, watcher_id: int) -> None:
        watcher = self._watchers.pop(watcher_id, None)
        if watcher is not None and watcher.matching is not None:
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
        for watcher_id in list(self._watchers):
            self._end(watcher_id)


class ConnectionWatcher:
    """One of a connection's watchers. See the module's docstring."""

    __slots__ = ("_changes", "_client", "_digest", "_id", "_is_told", "asks", "matching")

    def __init__(
        self, client: PulsarClient, watcher_id: int, asks: tuple[NamespaceName, str]
    ) -> None:
        self._client = client
        self._id = watcher_id
        self.asks = asks
        """The namespace, and the pattern without its domain."""
        self.matching: MatchingTopics | None = None
        self._changes: dict[str, bool] = {}
        """Names that have come (True) or gone, and are not sent yet."""
        self._digest = ""
        self._is_told = False

    async def answer(self, event: events.WatchTopics) -> None:
        """Send all that matches, unless the client's hash says that it knows."""
        assert self.matching is not None
        self.matching.tell()
        self._changes.clear()
        self._is_told = True
        digest = self.matching.digest
        names: Sequence[str] = () if digest == event.topics_hash else self.matching.names
        self._client.reply_large(
            replies.watch_topic_list_success(event.request_id, self._id, names, digest)
        )

    def changed(self, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        self._digest = digest
        for name in new:
            self._note(name, True)
        for name in gone:
            self._note(name, False)
        self.send()

    def _note(self, name: str, present: bool) -> None:
        if self._changes.get(name, present) is not present:
            del self._changes[name]
        else:
            self._changes[name] = present

    def send(self) -> None:
        """Send what has changed, if the client receives."""
        client = self._client
        while self._changes and self._is_told and not client.gone:
            if client.connection.congested:
                if len(self._changes) > HELD_MAX:
                    client.connection.end("it does not receive changes of topics that it watches")
                return
            part = list(self._changes.items())[:NAMES_PER_UPDATE]
            for name, _ in part:
                del self._changes[name]
            client.reply_large(
                replies.watch_topic_update(
                    self._id,
                    [name for name, present in part if present],
                    [name for name, present in part if not present],
                    self._digest,
                )
            )

    def dropped(self) -> None:
        """Disconnect the client: it asks again, is refused, and lists the namespace instead."""
        self._client.connection.end("too many topics match what it watches")


def to_list(namespace: NamespaceName) -> Need:
    return Action.DESCRIBE, ResourceType.NAMESPACE, str(namespace)


def without_domain(pattern: str) -> str:
    """A pattern as it is matched: without `persistent://`, behind a `^` perhaps
    (`TopicList.java`). `NotAllowed` for one that is too long.
    """
    before, scheme, rest = pattern.partition("://")
    if scheme:
        for domain in sorted(DOMAINS, key=len, reverse=True):
            if before.endswith(domain):
                before = before.removesuffix(domain)
                break
        pattern = before + rest
    if len(pattern) > PATTERN_LETTERS_MAX:
        raise NotAllowed(
            "Unable to create topic list watcher: Pattern longer than maximum: "
            f"{PATTERN_LETTERS_MAX}"
        )
    return pattern


HANDLERS: Final[Mapping[type, Any]] = {
    events.WatchTopics: ConnectionWatches.on_watch,
    events.CloseWatch: ConnectionWatches.on_close,
}
