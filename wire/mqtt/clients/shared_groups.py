"""All shared subscriptions of this server, and their records.

A group exists as long as a session has its subscription, whether its client is connected or not.
Its record, in a compacted topic of its own, has its places and the messages that its members have
not acknowledged. It is stored before SUBACK if a session lasts, and a moment after changes; so
after a crash, messages of the last 0.2 s may be delivered again, also of QoS 2.

A group reads for all its members. So before it reads another log, members that may not read that
leave it, and their connections end.

Invariants: a group has a place in the matcher exactly while it has members; each of them may read
all logs that the group reads, by the rights that it had when the group began to, or when it came.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.clients import record as records
from magnetar.wire.mqtt.clients.record import SessionRecord, StoredInFlight, StoredPlace
from magnetar.wire.mqtt.codec.packets import NEVER_EXPIRES
from magnetar.wire.mqtt.delivery.feed import FeedReader, MessagePlace
from magnetar.wire.mqtt.delivery.logs import MqttLog, MqttLogs
from magnetar.wire.mqtt.delivery.matcher import Matcher, TopicSubscription
from magnetar.wire.mqtt.delivery.partitions import ABSENT
from magnetar.wire.mqtt.delivery.shared_group import SharedGroup
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.storage.keyed_log import KeyedLog

log = logging.getLogger(__name__)

QOS_MAX: Final = 2
GROUP_BYTES: Final = 3_000
"""What a shared subscription costs here, however many sessions have it."""
SESSION_BYTES: Final = 150
"""What a session with a shared subscription costs here, besides its client id."""

Logs = Sequence[MqttLog]
MayRead = Callable[[Subscriber, str, Sequence[TopicName]], bool]
"""Whether a member may read what a filter matches in these topics; if not, its connection ends."""


class SharedGroups:
    """See the module's docstring."""

    def __init__(
        self,
        stored: KeyedLog,
        logs: MqttLogs,
        matcher: Matcher[FeedReader],
        spawn: Callable[..., None],
        may_read: MayRead,
    ) -> None:
        self._stored = stored
        self._logs = logs
        self._matcher = matcher
        self._spawn = spawn
        self._may_read = may_read
        self._groups: dict[str, SharedGroup] = {}
        self._sessions: dict[str, set[str]] = {}
        """The client ids of the sessions that have each subscription."""
        self.bytes = 0
        """Their memory, estimated."""
        self._filters: dict[str, Sequence[str]] = {}
        """The shared subscriptions of each session that is replayed, until that is done."""
        self._records: set[str] = set()
        """Groups with a record."""
        self._dirty: dict[SharedGroup, None] = {}

    @property
    def count(self) -> int:
        return len(self._sessions)

    def names(self) -> list[str]:
        """Those that a session has."""
        return list(self._sessions)

    def sessions_of(self, name: str) -> int:
        """How many sessions have it, connected or not."""
        return len(self._sessions.get(name, ()))

    def find(self, name: str) -> SharedGroup | None:
        """None if nobody has been connected since the start, and it has no record."""
        return self._groups.get(name)

    def lasting(self) -> list[SharedGroup]:
        """Those that are stored, for a session that lasts."""
        return [found for name in self._records if (found := self._groups.get(name)) is not None]

    # -- opening ----------------------------------------------------------------------------------

    def replayed(self, client_id: str, record: SessionRecord | None) -> None:
        """A stored record of a session, which replaces earlier ones; None if it has ended."""
        for name in self._filters.pop(client_id, ()):
            self._remove(client_id, name)
        subscriptions = record.subscriptions if record is not None else ()
        shared = [one.filter for one in subscriptions if one.filter.startswith(topics.SHARE)]
        if shared:
            self._filters[client_id] = shared
        for name in shared:
            self._add(client_id, name)

    def _add(self, client_id: str, name: str) -> None:
        sessions = self._sessions.setdefault(name, set())
        if not sessions:
            self.bytes += GROUP_BYTES
        if client_id not in sessions:
            sessions.add(client_id)
            self.bytes += SESSION_BYTES + len(client_id)

    def _remove(self, client_id: str, name: str) -> bool:
        """Returns whether that was the last session with the subscription."""
        sessions = self._sessions.get(name, set())
        if client_id not in sessions:
            return False
        sessions.discard(client_id)
        self.bytes -= SESSION_BYTES + len(client_id)
        if not sessions:
            self.bytes -= GROUP_BYTES
            del self._sessions[name]
        return not sessions

    async def open(self) -> None:
        """Restore the groups of which the replayed sessions are members."""
        self._filters.clear()
        found: dict[str, bytes] = {}

        def replayed(message: KeyedMessage) -> None:
            found[message.packet.topic.decode()] = message.packet.payload

        if await self._stored.exists():
            await self._stored.replay(replayed)
        for name, data in found.items():
            if data and name in self._sessions:
                self._records.add(name)
                self._restore(name, data)
            elif data:
                self._spawn(self._forget, name)

    def _restore(self, name: str, data: bytes) -> None:
        try:
            record = records.decode(data)
        except Corrupted as error:
            log.error("the shared subscription %s continues at the end: %s", name, error)
            return
        places = {
            one.log: MessagePlace((one.ledger_id, one.entry_id), one.place) for one in record.places
        }
        returned = [
            (record.places[one.log].log, MessagePlace((one.ledger_id, one.entry_id), one.place))
            for one in record.in_flight
        ]
        self._group(name).restore(places, returned)

    def _group(self, name: str) -> SharedGroup:
        found = self._groups.get(name)
        if found is None:
            shared = topics.shared(name)
            assert shared is not None
            found = SharedGroup(name, shared.filter, self._changed, self._spawn)
            self._groups[name] = found
        return found

    # -- members ----------------------------------------------------------------------------------

    def enter(
        self, client_id: str, member: Subscriber, subscription: TopicSubscription, logs: Logs
    ) -> None:
        """Make a client a member of the group that its filter names, which reads these logs; if it
        may not read all that the group does, its connection ends.
        """
        name = subscription.filter
        group = self._group(name)
        self._add(client_id, name)
        if not self._may_read(member, name, self.read_by(name, logs)):
            return
        self._dismiss(group, logs)
        if not group.members:
            self._matcher.add(group, TopicSubscription(group.filter, QOS_MAX))
        group.attach(member, subscription, {each.name.full: each.feed for each in logs})

    def read_by(self, name: str, logs: Logs = ()) -> list[TopicName]:
        """What a group reads once it reads these logs, too."""
        group, names = self._groups.get(name), {each.name.full: each.name for each in logs}
        feeds = () if group is None else group.feeds
        return [*names.values(), *(TopicName.parse(full) for full in feeds if full not in names)]

    def read(self, group: SharedGroup, logs: Logs, *, whole: Container[str] = ()) -> bool:
        """Have a group read these logs; see `SharedGroup.read`."""
        self._dismiss(group, logs)
        return group.read({each.name.full: each.feed for each in logs}, whole=whole)

    def _dismiss(self, group: SharedGroup, logs: Logs) -> None:
        """Have members leave that may not read a log which the group does not read yet."""
        new = [each.name for each in logs if each.name.full not in group.feeds]
        if not new:
            return
        for member in list(group.members):
            if not self._may_read(member, group.name, new):
                self.leave(member, group.name, lasts=True)

    async def keep(self, client_id: str, name: str, logs: Logs) -> None:
        """A session that lasts is about to enter a group: store that, if it is not. If this fails,
        the session does not have it.
        """
        if name in self._records:
            return
        is_new = client_id not in self._sessions.get(name, ())
        self._add(client_id, name)
        group = self._group(name)
        self.read(group, logs)
        try:
            await self._stored.store(name.encode(), _encoded(group))
        except BaseException:
            if is_new:
                self.give_up(client_id, name)
            raise
        if self._groups.get(name) is group:
            self._records.add(name)
            self._dirty[group] = None
        else:
            self._spawn(self._forget, name)

    def give_up(self, client_id: str, name: str) -> None:
        """A session does not enter a group after all."""
        group = self._groups.get(name)
        members = () if group is None else group.members
        if all(member.client_id != client_id.encode() for member in members):
            self.ended(client_id, (name,))

    def unsubscribe(self, client_id: str, member: Subscriber, name: str) -> None:
        """A session ends its subscription."""
        self.leave(member, name, lasts=False)
        self.ended(client_id, (name,))

    def leave(self, member: Subscriber, name: str, *, lasts: bool) -> None:
        """A member's connection ends, or its subscription."""
        group = self._groups.get(name)
        if group is None:
            return
        group.detach(member, lasts=lasts)
        if not group.members:
            self._matcher.remove(group, group.filter)

    def ended(self, client_id: str, filters: Iterable[str]) -> None:
        """A session has ended that had these filters."""
        for name in filters:
            if self._remove(client_id, name):
                self._end(name)

    def _end(self, name: str) -> None:
        """No session has the subscription any more."""
        group = self._groups.pop(name, None)
        if group is not None:
            self._dirty.pop(group, None)
        if name in self._records:
            self._records.discard(name)
            self._spawn(self._forget, name)

    async def _forget(self, name: str) -> None:
        try:
            if name not in self._records:
                await self._stored.store(name.encode(), b"")
        except BrokerError as error:
            log.warning("the record of %s stays: %s", name, error)

    async def logs_of(self, name: str, *, is_granted: bool = False) -> list[MqttLog]:
        """The logs that a group reads: the sources of its filter, and others in which it still has
        a place, with messages behind it or not acknowledged. `is_granted` as in `MqttLogs`.
        """
        shared, group = topics.shared(name), self._groups.get(name)
        assert shared is not None
        logs = await self._logs.sources_of(shared.filter, is_granted=is_granted)
        if group is None:
            return logs
        present = {log.name.full for log in logs}
        unacknowledged = {log for log, _ in group.unacknowledged()}
        for full, at in group.places().items():
            if full in present:
                continue
            try:
                former = await self._logs.get(TopicName.parse(full))
            except ABSENT:
                continue
            if at.position < former.feed.end or full in unacknowledged:
                logs.append(former)
            elif full not in group.feeds:
                group.forget(full)
        return logs

    async def read_new_logs(self, *, whole: bool = False) -> list[MqttLog]:
        """Read logs that have come since: of new rules, or new partitions of the groups' topics.
        Returns those of groups that last; stored when this returns.
        """
        kept: dict[MqttLog, None] = {}
        for group in list(self._groups.values()):
            logs = await self.logs_of(group.name, is_granted=True)
            begins = {each.name.full for each in logs if whole or self._logs.is_single(each)}
            if not self.read(group, logs, whole=begins):
                continue
            if group.name in self._records:
                kept |= dict.fromkeys(logs)
                await self._stored.store(group.name.encode(), _encoded(group))
        return list(kept)

    # -- records ----------------------------------------------------------------------------------

    async def stop(self) -> None:
        """The server stops, and all members have left: store what has changed."""
        dirty, self._dirty = self._dirty, {}
        for group in dirty:
            try:
                await self._stored.store(group.name.encode(), _encoded(group))
            except BrokerError as error:
                log.warning("%s is kept as it was last stored: %s", group.name, error)

    def _changed(self, group: SharedGroup) -> None:
        if group.name in self._records:
            self._dirty[group] = None

    def save_dirty(self) -> None:
        """Store the records of groups that have changed. Plain call."""
        dirty, self._dirty = self._dirty, {}
        for group in dirty:
            if group.name in self._records:
                self._stored.put(group.name.encode(), _encoded(group), _ignore)

    def positions(self) -> Iterator[tuple[str, Position]]:
        """The positions that groups need, by log."""
        for group in self._groups.values():
            for name, place in group.places().items():
                yield name, place.position
            for name, place in group.unacknowledged():
                yield name, place.position


def _ignore(_result: Position | BrokerError) -> None:
    """The next change stores it again."""


def _encoded(group: SharedGroup) -> bytes:
    places = group.places()
    unacknowledged = group.unacknowledged()
    for name, place in unacknowledged:
        places.setdefault(name, place)
    numbers = {name: number for number, name in enumerate(places)}
    return records.encode(
        SessionRecord(
            NEVER_EXPIRES,
            places=tuple(StoredPlace(name, *at.position, at.place) for name, at in places.items()),
            in_flight=tuple(
                StoredInFlight(0, numbers[name], *at.position, at.place, 1, False)
                for name, at in unacknowledged
            ),
        )
    )
