"""What an operator can set for Pulsar's clients."""

from __future__ import annotations

from msgspec import Struct

from magnetar.wire.pulsar import replies
from magnetar.wire.pulsar.wire import WireOptions


class PulsarOptions(Struct, frozen=True):
    """See the module's docstring."""

    server_version: str = "Magnetar"
    address: replies.Address = replies.Address()
    """The address that a lookup answers."""
    through_service_url: bool = True
    """Tell clients to stay on the address they dialled: right for loopback and forwarded ports."""
    wire: WireOptions = WireOptions()
    pending_messages_max: int = 10_000
    """Messages of one connection not stored yet: it is not read until half of them are."""
    lookups_max: int = 50_000
    """Lookups under way, of all connections together: more are refused."""
    batch_index_acks: bool = True
    """Messages of a batch are acknowledged one by one: on by default since 4.2 (PIP-391)."""
    expose_broker_metadata: bool = False
