"""TLS as a wire: it decrypts for the wire above it and encrypts what that one packs.

`ssl.MemoryBIO` separates OpenSSL from the socket, so TLS connections use the same loop as all
others, and the wire above is unaware of TLS.

Whoever says `close_notify` may wait for ours before it closes its socket, as RFC 5246 7.2.1 has it:
clients on Python's asyncio do so for 30 s.

Invariant: no plain byte leaves before the handshake is done, and none that fails its check is fed.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import NamedTuple

from magnetar.core.kernel.errors import PeerLeft, WireError
from magnetar.core.link.layers.layer import PLAIN_BYTES_MAX, Layer
from magnetar.core.link.wire import Wire

RECORD_BYTES_MAX = 16 * 1024


class TlsParts(NamedTuple):
    """The TLS of a connection whose handshake is done, and plain bytes that nobody has read."""

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO
    plain: bytes


class TlsWire(Layer):
    """See the module's docstring."""

    def __init__(self, context: ssl.SSLContext, inner: Wire) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        self._begin(TlsParts(tls, incoming, outgoing, b""), inner)
        self._established = False

    def _begin(self, parts: TlsParts, inner: Wire) -> None:
        super().__init__(inner)
        self.tls, self._incoming, self._outgoing, plain = parts
        """What the peer has shown; read only."""
        self._plain += plain
        self._has_unread = bool(plain)
        """Whether the wire above has not been fed with what was read elsewhere."""
        self._established = True
        self._ended = self._peer_ended = False

    @classmethod
    def resumed(cls, parts: TlsParts, inner: Wire) -> TlsWire:
        """Go on with a connection that somebody else has begun to read."""
        wire = cls.__new__(cls)
        wire._begin(parts, inner)
        return wire

    def feed(self, data: bytes) -> int:
        self._incoming.write(data)
        if self._has_unread:
            self._has_unread = False
            self._feed_inner()
        try:
            if self._established or self._shake_hands():
                self._decrypt()
        except ssl.SSLError as error:
            self._ended = True  # OpenSSL encrypts nothing more; it only has an alert to send
            raise WireError(f"TLS: {error.reason or error}") from error
        return len(data)

    def _shake_hands(self) -> bool:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._established = True
        return True

    def _decrypt(self) -> None:
        """Decrypt, and feed the wire above."""
        plain = self._plain
        more = True
        while more:
            before, requested = len(plain), self.inner.frame_bytes_wanted
            # At least one piece: a rest of unknown size would be fed for ever.
            more = self._read(max(PLAIN_BYTES_MAX, requested, before + 1))
            if len(plain) > before:
                self._feed_inner()
        if self._peer_ended:
            raise PeerLeft("the peer closed")

    def _read(self, enough: int) -> bool:
        """Decrypt until that many plain bytes wait; returns whether there may be more."""
        plain = self._plain
        while len(plain) < enough:
            try:
                piece = self.tls.read(RECORD_BYTES_MAX)
            except ssl.SSLWantReadError:
                return False
            if not piece:  # close_notify
                self._peer_ended = True
                return False
            plain += piece
        return True

    def take_outgoing(self) -> list[bytes]:
        if self._established and not self._ended:
            try:
                for piece in self.inner.take_outgoing():
                    self.tls.write(piece)
            except ssl.SSLError:  # the peer has begun something unsupported
                self._ended = True
        sealed = self._outgoing.read()
        return [sealed] if sealed else []

    def farewell(self) -> list[bytes]:
        """Send `close_notify`."""
        if self._established and not self._ended:
            with suppress(ssl.SSLError):
                for piece in self._inner_farewell():
                    self.tls.write(piece)
        self._ended = True
        if self._established:
            # It always raises, because the peer's close_notify is missing; ours is packed.
            with suppress(ssl.SSLError):
                self.tls.unwrap()
        return self.take_outgoing()
