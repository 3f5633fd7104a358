"""For whom a proxy speaks: its client, as it names them, or as they prove to be.

    named    `original_principal` of CONNECT is taken at its word; the default, as with Apache's
    proven   with `authenticate_original_auth_data` the proxy has to pass on what its client said
             (`original_auth_data`, `original_auth_method`), which is looked at when the proxy
             itself is known. It proves the name; the one that is named does not count. What
             expires, and is refreshed, is the client's proof: the proxy's was looked at once

(`ServerCnx.java`, `isValidOriginalPrincipal` in `AuthorizationService.java` of 4.2.) A proof of
several rounds cannot be passed on, since a challenge could not tell whom it is for
(apache/pulsar#19291). A certificate of the connection is the proxy's, so it proves nothing here.

Invariant: only who has one of the roles of proxies speaks for somebody, and never for a proxy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.kernel.errors import Unauthenticated, Unauthorized
from magnetar.core.security.conversation import AuthPeer, Conversation
from magnetar.core.security.identity import Identity, is_name

if TYPE_CHECKING:
    from magnetar.core.security.access import Access
    from magnetar.wire.pulsar import events
    from magnetar.wire.pulsar.session.options import PulsarOptions
    from magnetar.wire.pulsar.values import OriginalUser


class OriginalPrincipal:
    """See the module's docstring."""

    __slots__ = ("_access", "_options", "_peer", "_proven", "_says_proxy", "_user", "method")

    def __init__(self, access: Access, options: PulsarOptions, host: str) -> None:
        """`host` is the proxy's address, to which failures are counted."""
        self._access = access
        self._options = options
        self._peer = AuthPeer(host)
        self._user: OriginalUser | None = None
        self._says_proxy = False
        self._proven: Identity | None = None
        self.method = ""
        """How the client has proved itself; empty if it was not asked to, or is anonymous."""

    def connects(self, event: events.Connect) -> None:
        """CONNECT names somebody, or nobody."""
        self._user = event.original_user
        self._says_proxy = bool(event.proxy_version)

    async def prove(self) -> None:
        """Look at the client's proof, if it has to have one; raises `Unauthenticated`."""
        user = self._user
        if user is None or not self._options.authenticate_original_auth_data:
            return
        if user.auth_method not in self._access.mechanisms:
            self._proven = self._access.anonymous()
            return
        conversation = self.begin(user.auth_method)
        await conversation.respond(user.auth_data.encode())
        if conversation.identity is None:
            raise Unauthenticated("the proof of a proxy's client may have one message only")
        self._proven, self.method = conversation.identity, user.auth_method

    def is_over(self) -> None:
        """Forget what was said: a connection keeps nothing of any size."""
        self._user = None

    def begin(self, method: str) -> Conversation:
        """Begin an exchange with the proxy's client."""
        return self._access.begin(method, self._peer)

    def refreshed(self, identity: Identity) -> None:
        """The client has proved itself anew. Raises `Unauthorized` if it is a proxy now."""
        if self._access.judge is not None:
            self._check_no_proxy(identity)
        self._proven = identity

    def speaking(self, proxy: Identity) -> Identity | None:
        """Whom somebody speaks for; None for himself. Raises `Unauthorized`."""
        if self._access.judge is None:
            return self._proven
        proxies, user = self._options.proxy_roles, self._user
        if proxies.isdisjoint(proxy.roles):
            if user is not None:
                raise Unauthorized("Invalid roles: only a proxy may name an original principal")
            if self._says_proxy:
                raise Unauthorized("Invalid roles: only a proxy may have a proxy's version")
            return None
        if user is None or not is_name(user.principal):
            raise Unauthorized("Invalid roles: a proxy has to name an original principal")
        if self._options.authenticate_original_auth_data and self._proven is None:
            raise Unauthorized("Invalid roles: the client of a proxy has to prove who it is")
        found = self._proven or Identity(user.principal, method=proxy.method)
        self._check_no_proxy(found)
        return found

    def _check_no_proxy(self, client: Identity) -> None:
        if not self._options.proxy_roles.isdisjoint(client.roles):
            raise Unauthorized("Invalid roles: a proxy may not speak for another")
