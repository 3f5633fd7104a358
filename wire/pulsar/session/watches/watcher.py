"""One watcher of a connection: what its client is told, and when.

    asked      the client has no answer yet
    told       it has the list; a change is sent at once
    held back  it does not receive what it was sent: changes are collected, and sent when it does

Nothing is collected for one that was only asked for, since its answer has everything.

Invariants: the changes of a watcher reach its client in order, and none is left out; a client whose
watchers together have `HELD_MAX` changes that it does not receive is disconnected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.names import NamespaceName
from magnetar.wire.pulsar import events, replies

if TYPE_CHECKING:
    from magnetar.core.broker.topic_watches import MatchingTopics
    from magnetar.wire.pulsar.session.client import PulsarClient

HELD_MAX: Final = 20_000
"""Of one connection."""
NAMES_PER_UPDATE: Final = 5_000
"""A frame has at most so many names, half a megabyte or so."""


class HeldChanges:
    """How many changes all watchers of a connection have that are not sent."""

    __slots__ = ("are_too_many", "count")

    def __init__(self) -> None:
        self.count = 0
        self.are_too_many = False
        """The connection is being closed, which may take a while: nothing more is collected."""


class ConnectionWatcher:
    """One of a connection's watchers. See the module's docstring."""

    __slots__ = ("_changes", "_client", "_digest", "_held", "_id", "_is_told", "asks", "matching")

    def __init__(
        self,
        client: PulsarClient,
        watcher_id: int,
        asks: tuple[NamespaceName, str],
        held: HeldChanges,
    ) -> None:
        self._client = client
        self._held = held
        self._id = watcher_id
        self.asks = asks
        """The namespace, and the pattern without its domain."""
        self.matching: MatchingTopics | None = None
        self._changes: dict[str, bool] = {}
        """Names that have come (True) or gone, and are not sent yet."""
        self._digest = ""
        self._is_told = False

    def answer(self, event: events.WatchTopics) -> None:
        """Send all that matches, unless the client's hash says that it knows. Nothing of it is to
        be told (`MatchingTopics.tell`).
        """
        assert self.matching is not None
        self.forget()
        self._is_told = True
        digest = self.matching.digest
        names: Sequence[str] = () if digest == event.topics_hash else self.matching.names
        self._client.reply_large(
            replies.watch_topic_list_success(event.request_id, self._id, names, digest)
        )

    def changed(self, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        if not self._is_told or self._held.are_too_many:
            return
        self._digest = digest
        before = len(self._changes)
        for name in new:
            self._note(name, True)
        for name in gone:
            self._note(name, False)
        self._held.count += len(self._changes) - before
        self.send()

    def forget(self) -> None:
        """Forget what is not sent."""
        self._held.count -= len(self._changes)
        self._changes.clear()

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
                if self._held.count > HELD_MAX:
                    self._held.are_too_many = True
                    client.connection.end("it does not receive changes of topics that it watches")
                return
            part = list(self._changes.items())[:NAMES_PER_UPDATE]
            for name, _ in part:
                del self._changes[name]
            self._held.count -= len(part)
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
