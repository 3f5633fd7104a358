"""Shared subscriptions, as administrators list them."""

from __future__ import annotations

from itertools import islice
from typing import Final

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.ports.client_administration import (
    MemberDetails,
    Page,
    SharedSubscriptionDetails,
    SharedSubscriptionQuery,
)
from magnetar.wire.mqtt.administration.pages import page_of
from magnetar.wire.mqtt.administration.places import place_details
from magnetar.wire.mqtt.delivery.shared_group import SharedGroup
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.services import MqttServices
from magnetar.wire.mqtt.session.client import ConnectedClient

MEMBERS_SHOWN_MAX: Final = 100
MEMBERS_PER_TURN: Final = 10
"""Members whose messages are counted before other tasks run."""


class MqttSharedSubscriptionAdministration:
    """See the module's docstring."""

    def __init__(self, services: MqttServices) -> None:
        self._services = services

    async def shared_subscriptions(
        self, query: SharedSubscriptionQuery
    ) -> Page[SharedSubscriptionDetails]:
        groups = self._services.groups
        names, following = await page_of(groups.names(), query.after, query.limit)
        return Page([await self._details(name) for name in names], following)

    async def _details(self, name: str) -> SharedSubscriptionDetails:
        groups, broker = self._services.groups, self._services.broker
        sessions, group = groups.sessions_of(name), groups.find(name)
        if group is None:
            return SharedSubscriptionDetails(name, sessions, 0, (), 0, ())
        places = [
            await place_details(broker, topic, at.position, at.place)
            for topic, at in sorted(group.places().items())
        ]
        first = list(islice(group.members, MEMBERS_SHOWN_MAX))
        members = [self._member(group, one) async for one in Cooperative(first, MEMBERS_PER_TURN)]
        unacknowledged = len(group.unacknowledged())
        return SharedSubscriptionDetails(
            name, sessions, len(group.members), members, unacknowledged, places
        )

    def _member(self, group: SharedGroup, member: Subscriber) -> MemberDetails:
        client_id = member.client_id.decode()
        client = self._services.sessions.connected.get(client_id)
        address = client.connection.peer if isinstance(client, ConnectedClient) else None
        in_flight = sum(found.message.group is group for _, found in member.ids)
        return MemberDetails(client_id, address, in_flight)
