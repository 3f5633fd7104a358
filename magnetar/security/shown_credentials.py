"""What a client of bookies shows to those that ask who it is, from the settings: `bookie_token`, or
`bookie_password`, and `bookie_certificate`, over TLS.

Invariant: what is shown is what the file held a second ago.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable

import trio

from magnetar.bookie.client.connection.authenticated_network import AuthenticatedNetwork
from magnetar.bookie.client.connection.encrypted_network import EncryptedNetwork
from magnetar.bookie.rpc.credentials import Credentials, PasswordCredentials, TokenCredentials
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.network import Network
from magnetar.operator_error import OperatorError
from magnetar.security.sources import LOOK_SECONDS, SecretSource
from magnetar.settings.security import Security


def nonce() -> str:
    """A text that nobody can guess."""
    return secrets.token_hex(16)


class ShownCredentials:
    """The credentials of this process at bookies, read again when their file changes."""

    def __init__(self, settings: Security) -> None:
        """Raises `OperatorError` for files that cannot be used."""
        self.credentials: Credentials | None = None
        """None to show nothing."""
        self._source: SecretSource | None = None
        self._changed = False
        self._settings = settings
        if settings.bookie_ca:
            self._context()
        elif settings.bookie_certificate or settings.bookie_key:
            raise OperatorError(
                "security.bookie_certificate is shown over TLS: security.bookie_ca says whose "
                "certificates of bookies are trusted"
            )
        if settings.bookie_token and settings.bookie_password:
            raise OperatorError(
                "security.bookie_token and security.bookie_password are both set: bookies are "
                "shown one of them"
            )
        if settings.bookie_token:
            self._open("bookie_token", settings.bookie_token, self._tokens())
        elif settings.bookie_password:
            self._open("bookie_password", settings.bookie_password, self._passwords())

    def _open(self, setting: str, where: str, take: Callable[[bytes], None]) -> None:
        self._source = SecretSource(f"security.{setting}", where, take)
        self._source.open()

    def _tokens(self) -> Callable[[bytes], None]:
        shown = self.credentials = TokenCredentials()

        def take(raw: bytes) -> None:
            token = raw.strip().removeprefix(b"token:")
            if not token or len(token.split()) != 1:
                raise ValueError("it holds no token")
            shown.token = token
            self._changed = True

        return take

    def _passwords(self) -> Callable[[bytes], None]:
        shown = self.credentials = PasswordCredentials(nonce)

        def take(raw: bytes) -> None:
            name, colon, password = raw.decode().rstrip("\r\n").partition(":")
            if not name or not colon:
                raise ValueError("it is not NAME:PASSWORD")
            shown.name, shown.password = name, password

        return take

    def _context(self) -> ssl.SSLContext:
        """Raises `OperatorError`, which is a failure of one connection after the start."""
        settings = self._settings
        named = " or ".join(
            filter(None, (settings.bookie_ca, settings.bookie_certificate, settings.bookie_key))
        )
        try:
            context = ssl.create_default_context(cafile=settings.bookie_ca)
            if settings.bookie_certificate:
                context.load_cert_chain(settings.bookie_certificate, settings.bookie_key or None)
        except ssl.SSLError as error:
            raise OperatorError(f"{named}: {error.reason or error}") from None
        except OSError as error:
            raise OperatorError(f"cannot read {named}: {error.strerror}") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = settings.bookie_verify_host
        return context

    def _context_now(self) -> ssl.SSLContext:
        """Files that cannot be used at the moment fail a connection, and nothing else."""
        try:
            return self._context()
        except OperatorError as error:
            raise StorageFailed(f"no TLS with bookies: {error}") from None

    def network(self, network: Network) -> Network:
        """Connections to bookies that know who asks."""
        if self._settings.bookie_ca:
            network = EncryptedNetwork(network, self._context_now)
        if self.credentials is None:
            return network
        return AuthenticatedNetwork(network, self.credentials)

    def first_words(self) -> Authenticate | None:
        """What is said on a connection before all else by those who cannot hold a conversation."""
        shown = self.credentials
        if not isinstance(shown, TokenCredentials):
            return None
        return Authenticate(shown.plugin, shown.token)

    async def run(self, say: Callable[[Authenticate], None] = lambda _words: None) -> None:
        """Read again what changes, until cancelled; `say` tells a new token on all connections,
        before the bookies end them for the old one.
        """
        self._changed = False
        while self._source is not None:
            await trio.sleep(LOOK_SECONDS)
            self._source.look()
            words = self.first_words()
            if self._changed and words is not None:
                say(words)
            self._changed = False
