"""Places in logs as administrators see them: with the number of messages behind each."""

from __future__ import annotations

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
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
    return max(ledger.confirmed_index - await _index_of(ledger, position) - place, 0)


async def _index_of(ledger: ManagedLedger, position: Position) -> int:
    """The index of an entry's first message."""
    cached = ledger.cached(position)
    if cached is not None:
        part, at = cached
        return part.header(at).first_index
    try:
        return (await ledger.read(position, 1, 1)).header(0).first_index
    except Corrupted:
        if ledger.losses.at(position) is None:
            raise
        return ledger.losses.index_at(position)
