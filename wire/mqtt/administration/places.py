"""Places in logs as administrators see them: with the number of messages behind each."""

from __future__ import annotations

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.index_lookup import first_index_at
from magnetar.core.ports.client_administration import PlaceDetails


async def place_details(broker: Broker, name: str, position: Position, place: int) -> PlaceDetails:
    """A place in the topic of that name."""
    try:
        topic = (await broker.topic(TopicName.parse(name), create=False)).stored
        backlog = None if topic is None else await messages_from(topic.ledger, position, place)
    except BrokerError:
        backlog = None
    return PlaceDetails(name, *position, place, backlog)


async def messages_from(ledger: ManagedLedger, position: Position, place: int = 0) -> int:
    """The number of messages from a place on."""
    normal = ledger.chain.normal(position)
    if normal != position:
        position, place = normal, 0  # it was trimmed
    if not ledger.chain.has(position):
        return 0
    return max(ledger.confirmed_index - await first_index_at(ledger, position) - place, 0)
