"""People who say their names and secrets, for tests of fronts."""

from __future__ import annotations

from collections.abc import Collection

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.access import Access
from magnetar.core.security.conversation import BASIC, PLAIN, TOKEN
from magnetar.core.security.identity import Identity
from magnetar.core.security.judge import Judge

SECRET = "secret"


class NameAndSecret:
    """An exchange of one message: PLAIN's, Pulsar's `basic`, or a name alone as a token."""

    refusal = ""

    def __init__(self, method: str, expires_at: float | None = None) -> None:
        self.identity: Identity | None = None
        self._method = method
        self._expires_at = expires_at

    async def respond(self, said: bytes) -> bytes:
        try:
            text = said.decode()
        except UnicodeDecodeError as error:
            raise Unauthenticated("it is not UTF-8") from error
        if self._method == TOKEN:
            name, secret = text, SECRET
        elif self._method == BASIC:
            name, _, secret = text.partition(":")
        else:
            _, name, secret = text.split("\0")
        if secret != SECRET or not name:
            raise Unauthenticated("the name or the secret is wrong")
        self.identity = Identity(name, (name,), self._method, self._expires_at)
        return b""


def guarded(
    superusers: Collection[str] = (),
    anonymous: Identity | None = None,
    expires_at: float | None = None,
) -> Access:
    """An access that asks everybody for name and secret, and permits what rules allow."""
    mechanisms = {
        method: lambda _peer, method=method: NameAndSecret(method, expires_at)
        for method in (PLAIN, BASIC, TOKEN)
    }
    return Access(mechanisms, Judge(superusers), anonymous)
