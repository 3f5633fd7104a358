"""TLS as a wire: it decrypts for the wire above it and encrypts what that one packs.

`ssl.MemoryBIO` keeps OpenSSL away from the socket, so TLS connections ride on the same loop as all
others. The wire above never knows.

Invariant: no plain byte leaves before the handshake is done, and none that fails its check is fed.
"""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from core.errors import WireError
from core.link.wire import Wire

RECORD_BYTES_MAX = 16 * 1024
PLAIN_BYTES_MAX = 64 * 1024
"""Plain bytes taken from OpenSSL before the wire above is fed."""


class TlsWire:
    """A wire under a wire (see the module's docstring)."""

    packs_unasked = True

    def __init__(self, context: ssl.SSLContext, inner: Wire) -> None:
        self.inner = inner
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._established = False
        self._ended = False
        self._left = b""

    @property
    def frame_bytes_wanted(self) -> int:
        """OpenSSL keeps incomplete records itself, so the link never has to."""
        return 0

    def feed(self, data: bytes) -> int:
        self._incoming.write(data)
        try:
            if self._established or self._shake_hands():
                self._decrypt()
        except ssl.SSLError as error:
            raise WireError(f"TLS: {error.reason or error}") from error
        return len(data)

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._established = True
        return True

    def _decrypt(self) -> None:
        more = True
        while more:
            pieces, size = [self._left], len(self._left)
            # One piece at least, or what is left without a size known would be fed for ever.
            enough = max(PLAIN_BYTES_MAX, self.inner.frame_bytes_wanted, size + 1)
            while size < enough:
                try:
                    piece = self._tls.read(RECORD_BYTES_MAX)
                except ssl.SSLWantReadError:
                    more = False
                    break
                if not piece:  # the peer said goodbye; the socket's end follows
                    more = False
                    break
                pieces.append(piece)
                size += len(piece)
            if len(pieces) > 1:
                plain = b"".join(pieces)
                self._left = plain[self.inner.feed(plain) :]

    def take_events(self) -> Sequence[Any]:
        return self.inner.take_events()

    def take_outgoing(self) -> list[bytes]:
        if self._established and not self._ended:
            for piece in self.inner.take_outgoing():
                self._tls.write(piece)
        sealed = self._outgoing.read()
        return [sealed] if sealed else []

    def farewell(self) -> list[bytes]:
        """Tell the peer that nothing was cut off (`close_notify`); nothing is packed any more."""
        self._ended = True
        if self._established:
            # It always complains, of the peer's own goodbye that has not come: ours is packed.
            with suppress(ssl.SSLError):
                self._tls.unwrap()
        return self.take_outgoing()
