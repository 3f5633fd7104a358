"""Authentication and authorisation, as fronts use them.

    `mechanisms`      the ways to prove an identity, by the names that clients use
    `begin`           begin an exchange of one of them (`conversation.py`)
    `by_certificate`  likewise, with the client's certificate, if it has shown one
    `nobody`          the identity of a client that proves nothing; None if it must prove one
    `check`           raise `Unauthorized` unless an action is allowed (`judge.py`): a plain call
    `live`            what authenticated connections are told when rights change or a proof expires

A server without mechanisms restricts nothing: everybody is `ANYBODY`, and may do everything.

Invariant: an identity comes from an exchange that succeeded, or is `nobody`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.kernel.errors import Unauthenticated, Unauthorized
from magnetar.core.security.actions import Action, ResourceType, shown
from magnetar.core.security.conversation import CERTIFICATE
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.core.security.live import LiveSessions

if TYPE_CHECKING:
    from magnetar.core.security.audit import AuditTrail
    from magnetar.core.security.conversation import AuthPeer, Conversation, Mechanism
    from magnetar.core.security.failures import FailedLogins
    from magnetar.core.security.judge import Judge


class Access:
    """See the module's docstring."""

    def __init__(
        self,
        mechanisms: dict[str, Mechanism] | None = None,
        judge: Judge | None = None,
        anonymous: Identity | None = ANYBODY,
        failures: FailedLogins | None = None,
        live: LiveSessions | None = None,
        *,
        audit: AuditTrail | None = None,
    ) -> None:
        self.mechanisms = mechanisms or {}
        self.judge = judge
        """None if everything is allowed."""
        self.nobody = anonymous
        self.live = live or LiveSessions()
        self.failures = failures
        self.audit = audit
        self.denials = 0
        """Actions that were denied."""

    @property
    def asks(self) -> bool:
        """Whether clients may or must say who they are."""
        return bool(self.mechanisms) or self.nobody is None

    def begin(self, mechanism: str, peer: AuthPeer) -> Conversation:
        """Begin an exchange; raises `Unauthenticated` if there is no such mechanism."""
        begin = self.mechanisms.get(mechanism)
        if begin is None:
            raise Unauthenticated(f"there is no authentication by {mechanism[:100]!r} here")
        found = begin(peer)
        if self.failures is None:
            return found
        return self.failures.watched(found, mechanism, peer)

    def by_certificate(self, peer: AuthPeer) -> Conversation | None:
        """Begin an exchange in which the client says nothing, if it has shown a certificate and
        certificates prove something here. For clients that try nothing else.
        """
        if CERTIFICATE not in self.mechanisms or peer.certificate is None:
            return None
        return self.begin(CERTIFICATE, peer)

    def anonymous(self) -> Identity:
        """The identity of a client that proves none; raises `Unauthenticated` if it must."""
        if self.nobody is None:
            raise Unauthenticated("this server wants to know who you are: authenticate")
        return self.nobody

    def rights_changed(self) -> None:
        """A rule has changed: decide anew, and tell those who are connected."""
        if self.judge is not None:
            self.judge.changed()
        self.live.rights_changed()

    def check(
        self, who: Identity, action: Action, kind: ResourceType, name: str, host: str = ""
    ) -> None:
        """Raise `Unauthorized` unless the action is allowed. Plain call, for every request."""
        if not self.allows(who, action, kind, name, host):
            resource = shown(kind, name)
            self.denied(who, host, action, resource)
            what = f"{action.words} {resource}"
            raise Unauthorized(f"{who.name or 'an anonymous client'} may not {what}")

    def check_somewhere(
        self, who: Identity, action: Action, kind: ResourceType, host: str = ""
    ) -> None:
        """Raise `Unauthorized` unless the action is allowed with some resource of the kind."""
        if self.judge is not None and not self.judge.allows_somewhere(who, action, kind, host):
            self.denied(who, host, action, f"any {kind.words}")
            raise Unauthorized(
                f"{who.name or 'an anonymous client'} may not {action.words} any {kind.words}"
            )

    def denied(self, who: Identity, host: str, action: Action, resource: str) -> None:
        """Somebody has tried what no rule allows. Plain call."""
        self.denials += 1
        if self.audit is not None:
            self.audit.denied(who, host, action.words, resource)

    def allows(
        self, who: Identity, action: Action, kind: ResourceType, name: str, host: str = ""
    ) -> bool:
        """Whether an action is allowed."""
        return self.judge is None or self.judge.allows(who, action, kind, name, host)
