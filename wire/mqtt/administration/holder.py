"""The subscription `mqtt-sessions`, and shared subscriptions, as other protocols' tools see them.

`clients/hold.py` keeps the subscription; this describes it, and says why only it may move it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.ledger.log.chain import Chain
from magnetar.core.topic.subscription.held import HeldClient, HeldGroup
from magnetar.wire.mqtt.administration.sessions import RECORDS_PER_TURN, VERSIONS
from magnetar.wire.mqtt.delivery.feed import FeedReader
from magnetar.wire.mqtt.delivery.shared_group import SharedGroup
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.session.client import ConnectedClient
from magnetar.wire.mqtt.topics import SHARE

MEMBERS_SHOWN_MAX: Final = 20
REFUSAL: Final = (
    "is held for the sessions of MQTT clients, so only they move it: end a session, or see its "
    "place, at /admin/v2/mqtt"
)


class SessionHolder:
    """See the module's docstring."""

    def __init__(self, services: MqttServices) -> None:
        self._services = services

    def refusal(self, name: str) -> str | None:
        if name == self._services.hold.subscription or name.startswith(SHARE):
            return f"the subscription {name} {REFUSAL}"
        return None

    def sessions(self, topic: str) -> int | None:
        return self._services.hold.sessions_in(topic)

    async def advance(self) -> None:
        """The records of connected clients are stored before, and may be up to date now."""
        clients = list(self._services.sessions.connected.values())
        async for client in Cooperative(clients, RECORDS_PER_TURN):
            client.changed()
            client.save_if_dirty()
        await self._services.hold.advance()

    def clients(self, topic: str, most: int) -> Sequence[HeldClient]:
        found = self._services.logs.find(topic)
        if found is None:
            return ()
        return list(islice(self._described(_members(found.feed.readers())), most))

    def _described(self, members: Iterable[Subscriber]) -> Iterator[HeldClient]:
        connected = self._services.sessions.connected
        for name in dict.fromkeys(member.client_id.decode() for member in members):
            client = connected.get(name)
            if isinstance(client, ConnectedClient):
                yield HeldClient(
                    name,
                    client.connection.peer,
                    f"MQTT {VERSIONS[client.version]}",
                    client.connected_ms,
                    client.subscriber.sent,
                    len(client.subscriber.ids),
                )

    def groups(self, topic: str, most: int) -> Sequence[HeldGroup]:
        found = self._services.logs.find(topic)
        stored = None if found is None else found.topic
        if stored is None:
            return ()
        groups = islice(self._services.groups.lasting(), most)
        described = (self._group(one, topic, stored.ledger.chain) for one in groups)
        return [one for one in described if one is not None]

    def _group(self, group: SharedGroup, topic: str, chain: Chain) -> HeldGroup | None:
        """None if it does not read the topic."""
        at = group.places().get(topic)
        if at is None:
            return None
        ledger_id, entry_id = chain.normal(at.position)
        behind = chain.entries_between((ledger_id, entry_id - 1), chain.confirmed)
        unacked = [place.position for name, place in group.unacknowledged() if name == topic]
        clients = list(islice(self._described(group.members), MEMBERS_SHOWN_MAX))
        sessions = self._services.groups.sessions_of(group.name)
        return HeldGroup(group.name, behind + len(set(unacked)), len(unacked), sessions, clients)


def _members(readers: Iterable[FeedReader]) -> Iterator[Subscriber]:
    """The subscribers of a feed, and the members of its shared subscriptions."""
    for reader in readers:
        if isinstance(reader, SharedGroup):
            yield from list(reader.members)
        elif isinstance(reader, Subscriber):
            yield reader
