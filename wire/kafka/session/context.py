"""The context of a request: its header, and its sender.

`RequestContext` is named for Kafka's (`org.apache.kafka.common.requests.RequestContext` of 4.2). A
handler gets one beside the request itself; its constructor names all else that it needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from magnetar.core.quotas.mutations import MutationQuota
from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.conversation import AuthPeer, Conversation
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.wire.kafka.names import resource_of
from magnetar.wire.kafka.session.wakeup import Wakeup

if TYPE_CHECKING:
    from magnetar.core.link.connection import Connection
    from magnetar.wire.kafka.addresses import Endpoint
    from magnetar.wire.kafka.codec.declare import Message


class HiddenTopics(NamedTuple):
    """Which of some topics a client may not describe, while rules are those of a generation."""

    of: frozenset[str]
    generation: int
    names: frozenset[str]


class Caller:
    """The client of one connection: its address, its identity, and whether it is still connected.

    Invariant: `closed` wakes every wait of this connection, after `gone` is set.
    """

    __slots__ = (
        "_asked_tls",
        "_wakeups",
        "access",
        "admitted",
        "connection",
        "endpoint",
        "gone",
        "hidden",
        "identity",
        "in_turn",
        "judged",
        "lapsed",
        "listener",
        "mechanism",
        "proof",
        "says_tokens",
    )

    def __init__(
        self,
        connection: Connection,
        endpoint: Endpoint,
        listener: str,
        access: Access | None = None,
    ) -> None:
        self.access = access or Access()
        self.connection = connection
        self.endpoint = endpoint
        """Our address for clients of this listener, as Metadata returns it (KIP-103)."""
        self.listener = listener
        self.gone = False
        self.identity: Identity = self.access.nobody or ANYBODY
        self.admitted = self.access.nobody is not None
        """Whether it may send requests: it has authenticated, or need not."""
        self.hidden: HiddenTopics | None = None
        """Of the matches of its member's pattern, as of the last heartbeat (KIP-848)."""
        self.judged = 0
        """Counts changes of what it may do."""
        self.lapsed = False
        """Its proof has expired, so its next request has to be another authentication (KIP-368)."""
        self.in_turn = False
        """Nothing has to come before its next request, as far as that was looked at."""
        self.mechanism = ""
        """The SASL mechanism of the exchange in progress, or of the last one."""
        self._asked_tls = False
        self.proof: Conversation | None = None
        """The SASL exchange while it is in progress; it ends with an identity."""
        self.says_tokens = False
        """The exchange is one of SaslHandshake 0: its tokens come without headers of requests."""
        self._wakeups: set[Wakeup] = set()

    @property
    def host(self) -> str:
        """The client's address without the port."""
        return self.connection.host

    def is_here(self, _now: float) -> bool:
        """Whether the connection is still open."""
        return not self.gone

    @property
    def peer(self) -> AuthPeer:
        """What is known of the client besides what it says."""
        return AuthPeer(self.host, self.connection.tls)

    def certificate_proof(self) -> Conversation | None:
        """The exchange of a client that has shown a certificate, and begins without SASL; once."""
        if self._asked_tls or self.identity.method:
            return None
        self._asked_tls = True
        return self.access.by_certificate(self.peer)

    @property
    def guarded(self) -> bool:
        """Whether there is anything that it may not do. It stays so for the connection's life."""
        return not self.admitted or self.access.judge is not None or bool(self.access.mechanisms)

    def may(self, action: Action, kind: ResourceType, name: str) -> bool:
        """Whether the client may do that; a topic has the client's name. Plain call."""
        judge = self.access.judge
        if judge is None:
            return True
        if kind is ResourceType.TOPIC:
            name = resource_of(name)
        return judge.allows(self.identity, action, kind, name, self.host)

    def must(self, action: Action, kind: ResourceType, name: str) -> bool:
        """As `may`, of what the client has asked for by name: a refusal is a denial."""
        if self.may(action, kind, name):
            return True
        self.access.denied(self.identity, self.host, action, f"{kind.words} {name}")
        return False

    def may_somewhere(self, action: Action, kind: ResourceType) -> bool:
        """Whether the client may do that with some resource of the kind."""
        judge = self.access.judge
        return judge is None or judge.allows_somewhere(self.identity, action, kind, self.host)

    def rights_changed(self) -> None:
        """Have waits look again. Nothing is detached: each request is checked, a member's next
        heartbeat included.
        """
        self.judged += 1
        self.relieved()

    def expired(self) -> None:
        """The proof has expired. As Kafka's, the connection ends at its next request unless it
        authenticates again (`SocketServer.processCompletedReceives` of 4.3).
        """
        self.lapsed, self.in_turn = True, False
        self.rights_changed()

    def relieved(self) -> None:
        """The client has received earlier responses: wake the waits for room."""
        for wakeup in self._wakeups:
            wakeup.wake()

    def closed(self) -> None:
        """The connection is gone."""
        self.gone = True
        self.access.live.remove(self)
        self.relieved()

    @contextmanager
    def wakeup(self) -> Iterator[Wakeup]:
        """A wakeup for one wait: set when the connection is gone or has room."""
        made = Wakeup()
        self._wakeups.add(made)
        try:
            yield made
        finally:
            self._wakeups.discard(made)


class RequestContext(Struct, frozen=True):
    """See the module's docstring."""

    key: int
    version: int
    correlation_id: int
    client_id: str
    caller: Caller
    refused: Sequence[Message] = ()
    """The answers of what was refused of the request. Handlers that encode their answers themselves
    add them (`long_lists.py`).
    """
    mutations: MutationQuota | None = None
    """The quota of mutations of its client, for requests that change topics; None for none."""


Handler = Callable[[RequestContext, Any], Awaitable[Any]]
"""Answers one kind of request.

Most handlers are coroutines, which run in a task later. A plain function that returns an awaitable
runs its first part at once, in the order of arrival over all connections.
"""
