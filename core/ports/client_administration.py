"""Administration of the clients of a protocol with sessions, as admin tools use it.

Such a protocol keeps sessions, retained messages and shared subscriptions, and maps topics by
rules. Its front implements these ports for each namespace that it serves. Lists come in pages: in
the order of names, after a name, so that a page may be requested at any time and nothing is kept
between two.

A name that does not exist is `NotFound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

Item = TypeVar("Item")

CONNECTED: Final = "connected"
ASLEEP: Final = "asleep"
"""A session without a connection."""


class Page(Struct, Generic[Item], frozen=True):
    """A part of a list."""

    items: Sequence[Item]
    next: str | None = None
    """The name after which the next part begins; None at the end of the list."""


# -- sessions ----------------------------------------------------------------------------------


class SessionQuery(Struct, frozen=True):
    """Which sessions to list."""

    prefix: str = ""
    """Of the client id."""
    state: str = ""
    """`CONNECTED` or `ASLEEP`; empty for both."""
    after: str = ""
    limit: int = 100


class SessionSummary(Struct, frozen=True, rename="camel"):
    """A session in a list. Times are in milliseconds since 1970."""

    client_id: str
    state: str
    address: str | None
    """`host:port` of the client while it is connected."""
    protocol_version: str | None
    subscriptions: int
    in_flight: int
    expires_at: int | None
    """When a session without a connection ends; None for never, or while it is connected."""


class SubscriptionDetails(Struct, frozen=True, rename="camel"):
    filter: str
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int | None


class PlaceDetails(Struct, frozen=True, rename="camel"):
    """Where a session, or a shared subscription, continues in one topic."""

    topic: str
    ledger_id: int
    entry_id: int
    place: int
    """The place of the message in its entry."""
    backlog: int | None
    """The messages of the topic from there on, whichever are for it; None if the topic is not
    there."""


class InFlightDetails(Struct, frozen=True, rename="camel"):
    """A message that is sent and not acknowledged."""

    packet_id: int
    qos: int
    released: bool
    """Of QoS 2: the client has received it, and does not know that the server knows."""
    topic: str
    """The topic that stores it."""
    ledger_id: int
    entry_id: int
    place: int


class WillDetails(Struct, frozen=True, rename="camel"):
    topic: str
    payload: bytes
    qos: int
    retain: bool
    delay_seconds: int


class SessionDetails(Struct, frozen=True, rename="camel"):
    """All about one session."""

    client_id: str
    state: str
    address: str | None
    protocol_version: str | None
    keep_alive_seconds: int | None
    connected_since: int | None
    expiry_seconds: int | None
    """How long it lasts after its connection; None for ever."""
    disconnected_at: int | None
    expires_at: int | None
    record_bytes: int
    """The size of its record; 0 if it has none."""
    subscriptions: Sequence[SubscriptionDetails]
    places: Sequence[PlaceDetails]
    in_flight: int
    in_flight_messages: Sequence[InFlightDetails]
    """The first of them."""
    receiving: int
    """Messages of QoS 2 from the client that wait for their release."""
    sent: int | None
    """Packets with messages that this connection was sent."""
    will: WillDetails | None


class SessionAdministration(Protocol):
    """The sessions of a namespace's clients."""

    async def sessions(self, query: SessionQuery) -> Page[SessionSummary]: ...

    async def session(self, client_id: str) -> SessionDetails: ...

    async def end_session(self, client_id: str) -> None:
        """End a session and its connection; its will is published."""
        ...

    async def disconnect(self, client_id: str) -> None:
        """Close the connection of a session; `NotAllowed` without one."""
        ...


# -- retained messages -------------------------------------------------------------------------


class RetainedQuery(Struct, frozen=True):
    """Which retained messages to list or delete."""

    filter: str = ""
    """A topic filter; empty for all."""
    after: str = ""
    limit: int = 100


class RetainedDetails(Struct, frozen=True, rename="camel"):
    """A retained message."""

    topic: str
    payload: bytes
    qos: int
    publisher: str
    """The client id."""
    published_at: int
    expires_at: int | None
    properties: dict[str, object]


class RetainedAdministration(Protocol):
    """The retained messages of a namespace."""

    async def topics(self, query: RetainedQuery) -> Page[str]: ...

    async def message(self, topic: str) -> RetainedDetails: ...

    async def delete(self, topic: str) -> None: ...

    async def delete_matching(self, query: RetainedQuery) -> int:
        """Delete some that match; returns their number, the limit if there may be more."""
        ...


# -- mapping rules -----------------------------------------------------------------------------


class RuleDetails(Struct, frozen=True):
    """A rule: the topic that stores what a topic filter matches."""

    filter: str
    topic: str


class RulesDetails(Struct, frozen=True):
    """The rules of a namespace, in their order."""

    rules: Sequence[RuleDetails]
    configured: bool
    """They are those of the configuration."""
    version: int
    """The number of changes; a change states the version that it replaces."""


class RuleAdministration(Protocol):
    """The mapping rules of a namespace."""

    async def rules(self) -> RulesDetails: ...

    async def set_rules(self, rules: Sequence[RuleDetails], version: int | None) -> None:
        """Replace the rules, of this version if one is stated; else `BadVersion`."""
        ...

    async def reset_rules(self, version: int | None) -> None:
        """Go back to the rules of the configuration."""
        ...


# -- shared subscriptions ----------------------------------------------------------------------


class MemberDetails(Struct, frozen=True, rename="camel"):
    """A connected client with a shared subscription."""

    client_id: str
    address: str | None
    in_flight: int


class SharedSubscriptionDetails(Struct, frozen=True, rename="camel"):
    name: str
    """`$share/group/filter`."""
    sessions: int
    """How many sessions have it, connected or not."""
    connected: int
    """How many of them are connected."""
    members: Sequence[MemberDetails]
    """The first of those that are connected."""
    unacknowledged: int
    """Messages that members have not acknowledged, or that others will get."""
    places: Sequence[PlaceDetails]


class SharedSubscriptionQuery(Struct, frozen=True):
    after: str = ""
    limit: int = 100


class SharedSubscriptionAdministration(Protocol):
    """The shared subscriptions of a namespace's clients."""

    async def shared_subscriptions(
        self, query: SharedSubscriptionQuery
    ) -> Page[SharedSubscriptionDetails]: ...


class ClientAdministration(Struct, frozen=True):
    """The ports of one namespace."""

    sessions: SessionAdministration
    retained: RetainedAdministration
    rules: RuleAdministration
    shared_subscriptions: SharedSubscriptionAdministration
