"""Who the client of a connection is: proven with CONNECT, and again when the proof expires.

    state       what happens                        what follows
    new         CONNECT                             proving; known if it need not prove anything
    proving     the mechanism wants another round   AUTH_CHALLENGE: asked
                the mechanism finds an identity     CONNECTED, if it was new: known
                the mechanism refuses               ERROR, and the end
    asked       AUTH_RESPONSE                       proving
    known       the proof expires                   AUTH_CHALLENGE with `REFRESH`, two seconds
                                                    later: asked (PIP-55); the end at once if the
                                                    client cannot answer that, or has a certificate,
                                                    which stays the same

A proxy's client may have to prove itself, too (`original_principal.py`): then it is the client who
is asked when its proof expires, and who may not have another name.

What Apache's broker does was read in `ServerCnx.java` of 4.2: a client whose method is unknown is
anonymous if that is allowed, whatever certificate it shows; the name does not change by a later
proof; a client that does not answer within `ANSWER_SECONDS` is disconnected. Until then it may do
what it may.

Invariants: one proof is looked at at a time. No request is carried out before the client is known,
since the wire takes none (`PulsarWire.known`). A proof that nobody asked for is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import BrokerError, Unauthenticated, Unauthorized
from magnetar.core.security.conversation import CERTIFICATE, AuthPeer, Conversation
from magnetar.core.security.identity import Identity
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.errors import code_of
from magnetar.wire.pulsar.session.authentication.original_principal import OriginalPrincipal

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.options import PulsarOptions
    from magnetar.wire.pulsar.session.requests import RequestQueue

REFRESH: Final = b"PulsarAuthRefresh"
"""The data of a challenge that asks for a new proof (`AuthData.REFRESH_AUTH_DATA` of 4.2)."""
ANSWER_SECONDS: Final = 60.0
"""Time for that answer: `authenticationRefreshCheckSeconds` of Apache's broker."""
LATER_SECONDS: Final = 2.0
"""How long after its expiry a proof is asked for again. Clients of OAuth 2.0 say the token they
have while they believe in it, and they count `expires_in` from its arrival, while `exp` is in whole
seconds (`CachedToken` of the Java client 4.2, `Oauth2CachedToken` of C++): if they are asked sooner
they say the same token again, and lose the connection.
"""
ROUNDS_MAX: Final = 10
"""Messages of the client in one proof; SCRAM has three."""


class PulsarAuthentication:
    """See the module's docstring."""

    __slots__ = (
        "_asked",
        "_changed",
        "_client",
        "_clock",
        "_conversation",
        "_deadline",
        "_method",
        "_options",
        "_original",
        "_requests",
        "_rounds",
        "_welcome",
    )

    def __init__(
        self,
        client: PulsarClient,
        requests: RequestQueue,
        options: PulsarOptions,
        clock: Clock,
        welcome: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        """`welcome` is called once, when the client is known; `changed` when it has other roles."""
        self._client = client
        self._requests = requests
        self._options = options
        self._clock = clock
        self._welcome = welcome
        self._changed = changed
        self._method = ""
        self._conversation: Conversation | None = None
        self._rounds = 0
        self._asked = False
        """Whether an AUTH_RESPONSE is expected."""
        self._deadline: float | None = None
        """When a client that was asked for a new proof is disconnected."""
        self._original = OriginalPrincipal(client.access, options, client.connection.host)

    @property
    def subject(self) -> Identity:
        """Whose proof must not expire: the client's, or that of the client of a proxy."""
        client = self._client
        if self._original.method and client.original is not None:
            return client.original
        return client.identity

    def begin(self, event: events.Connect) -> None:
        """Begin with CONNECT."""
        access = self._client.access
        self._original.connects(event)
        try:
            if event.auth_method not in access.mechanisms:
                self._known(access.anonymous())
                return
            self._method = event.auth_method
            self._begin()
        except BrokerError as error:
            self._refuse(error)
            return
        self._requests.add(self._prove, event)

    def respond(self, event: events.AuthResponse) -> None:
        """Go on with AUTH_RESPONSE."""
        if not self._asked:
            return
        self._asked = False
        try:
            if event.auth_method != (self._original.method or self._method):
                raise Unauthenticated("the method may not change")
            if self._conversation is None:
                self._begin()
        except BrokerError as error:
            self._refuse(error)
            return
        self._requests.add(self._prove, event)

    def expired(self) -> None:
        """Ask for a new proof, or end the connection. Called again and again until there is one."""
        client, subject = self._client, self.subject
        if subject.method == CERTIFICATE:
            client.end("its certificate has expired, or its authority is trusted no longer")
        elif not client.features.auth_refresh:
            client.end("its credentials have expired, and it cannot refresh them")
        elif self._deadline is None:
            expires_at = subject.expires_at
            if expires_at is None or self._clock.wall_ms() / 1000 >= expires_at + LATER_SECONDS:
                self._deadline = self._clock.monotonic() + ANSWER_SECONDS
                self._ask(REFRESH)
        elif self._clock.monotonic() >= self._deadline:
            client.end(f"its credentials expired {ANSWER_SECONDS:.0f} seconds ago")

    def close(self) -> None:
        """The connection is closed: tell nobody."""
        self._welcome = self._changed = lambda: None

    def _begin(self) -> None:
        client = self._client
        self._rounds = 0
        if self._original.method:
            self._conversation = self._original.begin(self._original.method)
            return
        peer = AuthPeer(client.connection.host, client.connection.tls)
        self._conversation = client.access.begin(self._method, peer)

    async def _prove(self, event: events.Connect | events.AuthResponse) -> None:
        """Pass on what the client says, and act on the result."""
        client, conversation = self._client, self._conversation
        assert conversation is not None, "begun before"
        try:
            self._rounds += 1
            if self._rounds > ROUNDS_MAX:
                raise Unauthenticated(f"more than {ROUNDS_MAX} rounds")
            answer = await conversation.respond(event.auth_data)
            if conversation.identity is not None and not client.known:
                await self._original.prove()
        except Unauthenticated as error:
            if not client.gone:
                self._refuse(error)
            return
        if client.gone:
            return
        identity = conversation.identity
        if identity is None:
            self._ask(answer)
            return
        self._conversation = self._deadline = None
        if client.known:
            self._refreshed(identity)
        else:
            self._known(identity)

    def _refreshed(self, identity: Identity) -> None:
        """The proof is new, the name may not be."""
        client, before = self._client, self.subject
        if identity.name != before.name:
            self._refuse(Unauthenticated("another name than before"))
            return
        if self._original.method:
            try:
                self._original.refreshed(identity)
            except Unauthorized as error:
                self._refuse(error)
                return
            client.original = identity
        else:
            client.identity = identity
        if before.roles != identity.roles:
            self._changed()

    def _ask(self, data: bytes) -> None:
        client = self._client
        self._asked = True
        version = self._options.server_version
        client.reply(replies.auth_challenge(version, client.protocol_version, self._method, data))

    def _known(self, identity: Identity) -> None:
        client = self._client
        try:
            client.original = self._original.speaking(identity)
        except Unauthorized as error:
            self._refuse(error)
            return
        self._original.is_over()
        client.identity, client.known = identity, True
        client.wire.known()
        self._welcome()

    def _refuse(self, error: BrokerError) -> None:
        client = self._client
        text = f"Failed to authenticate: {error}"
        client.reply(replies.error(replies.UNASKED, code_of(error), text))
        client.connection.end(text)  # behind the reply; what is attached is detached with it
