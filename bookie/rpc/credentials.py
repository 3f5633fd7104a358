"""What clients show to bookies that ask who they are: their side of authentication. Pure.

    plugin    shown                                  what else the bookie says
    token     a JSON Web Token                       nothing
    ticket    a permission to read some ledgers      nothing
    sasl      DIGEST-MD5, of a name and a password   a challenge, and that it knows it, too

BookKeeper's protocol has names of plugins and bytes (`AuthMessage`); of these `sasl` is its own
(`SaslConstants.java` of 4.18). `token` and `ticket` are ours: of Apache's clients and bookies a
provider of some thirty lines speaks `token` (`docs/security.md`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from magnetar.bookie.rpc.digest_md5 import DigestClient

AUTH_DISABLED: Final = "AuthDisabledPlugin"
"""`AuthProviderFactoryFactory.AUTHENTICATION_DISABLED_PLUGIN_NAME`: the answer of bookies that ask
nobody, or that know already.
"""
TOKEN: Final = "token"
TICKET: Final = "ticket"
SASL: Final = "sasl"
DIGEST_REALM: Final = "bookkeeper"
DIGEST_URI: Final = "bookkeeper/bookkeeper"
"""`SASL_BOOKKEEPER_PROTOCOL` and `SASL_MD5_DUMMY_HOSTNAME` of `SaslConstants.java`."""


class ClientExchange(Protocol):
    """One exchange with one bookie."""

    def respond(self, said: bytes) -> bytes | None:
        """What is said next, to nothing at first; None once it is over. `Unauthenticated` if the
        bookie is not who it should be.
        """
        ...


class Credentials(Protocol):
    """See the module's docstring. What they hold may change."""

    @property
    def plugin(self) -> str: ...

    def begin(self) -> ClientExchange:
        """Begin an exchange."""
        ...


class _Said:
    """Says one thing."""

    def __init__(self, what: bytes) -> None:
        self._what: bytes | None = what

    def respond(self, said: bytes) -> bytes | None:
        what, self._what = self._what, None
        return what


class TokenCredentials:
    """A token, or a ticket."""

    def __init__(self, plugin: str = TOKEN, token: bytes = b"") -> None:
        self.plugin: Final = plugin
        self.token = token

    def begin(self) -> ClientExchange:
        return _Said(self.token)


class PasswordCredentials:
    """A name and a password."""

    plugin: Final = SASL

    def __init__(self, nonce: Callable[[], str], name: str = "", password: str = "") -> None:
        """`nonce` makes a text that nobody can guess."""
        self.name = name
        self.password = password
        self._nonce = nonce

    def begin(self) -> ClientExchange:
        return _Digest(DigestClient(self.name, self.password, DIGEST_URI, self._nonce()))


class _Digest:
    """Says nothing first: the bookie does not speak before."""

    def __init__(self, client: DigestClient) -> None:
        self._client = client
        self._begun = False

    def respond(self, said: bytes) -> bytes | None:
        if self._begun:
            return self._client.respond(said)
        self._begun = True
        return b""
