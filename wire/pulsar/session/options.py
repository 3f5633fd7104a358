"""The options of the Pulsar front."""

from __future__ import annotations

from msgspec import Struct

from magnetar.wire.pulsar import replies
from magnetar.wire.pulsar.frames import MESSAGE_BYTES_MAX
from magnetar.wire.pulsar.wire import WireOptions


class PulsarOptions(Struct, frozen=True):
    """See the module's docstring."""

    server_version: str = "Magnetar"
    address: replies.Address = replies.Address()
    """The address in answers to LOOKUP."""
    through_service_url: bool = True
    """Have clients stay on the address they dialled (`proxy_through_service_url`), which suits
    loopback and forwarded ports."""
    wire: WireOptions = WireOptions()
    pending_messages_max: int = 10_000
    """Unstored messages of one connection; beyond it, reading pauses until half are stored."""
    lookups_max: int = 50_000
    """Lookups of all connections under way; more are refused."""
    batch_index_acks: bool = True
    """Whether messages of a batch are acknowledged one by one; the default since 4.2 (PIP-391)."""
    expose_broker_metadata: bool = False
    proxy_roles: frozenset[str] = frozenset()
    """Roles of proxies, which say for whom they speak (`proxyRoles`)."""
    authenticate_original_auth_data: bool = False
    """Whether the clients of proxies have to prove themselves, too."""
    held_bytes_max: int = 3 * MESSAGE_BYTES_MAX
    """Entries that wait in WebSockets until their peers permit them, of all together."""
    transactions: bool = True
    """Whether there are transactions (`transactionCoordinatorEnabled`)."""
