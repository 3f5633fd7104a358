"""TLS as a wire: it decrypts for the wire above it and encrypts what that one packs.

`ssl.MemoryBIO` separates OpenSSL from the socket, so TLS connections use the same loop as all
others, and the wire above is unaware of TLS.

Invariant: no plain byte leaves before the handshake is done, and none that fails its check is fed.
"""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from magnetar.core.kernel.errors import WireError
from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.wire import Wire

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
        self._plain = bytearray()
        """Decrypted bytes of an incomplete frame, which the wire above has not taken."""

    @property
    def frame_bytes_wanted(self) -> int:
        """0: OpenSSL itself holds incomplete records."""
        return 0

    @property
    def bytes_held(self) -> int:
        return len(self._plain)

    def feed(self, data: bytes) -> int:
        self._incoming.write(data)
        try:
            if self._established or self._shake_hands():
                self._decrypt()
        except ssl.SSLError as error:
            self._ended = True  # OpenSSL encrypts nothing more; it only has an alert to send
            raise WireError(f"TLS: {error.reason or error}") from error
        return len(data)

    def body_in(self, begin: bytes) -> tuple[int, int]:
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        self.feed(frame.whole())

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._established = True
        return True

    def _decrypt(self) -> None:
        """Feed the wire above, but not before its frame may be whole: each call copies all of it,
        and a frame may come in thousands of records.
        """
        plain = self._plain
        more = True
        while more:
            before, requested = len(plain), self.inner.frame_bytes_wanted
            # At least one piece: a rest of unknown size would be fed for ever.
            more = self._read(max(PLAIN_BYTES_MAX, requested, before + 1))
            if len(plain) > before and len(plain) >= requested:
                del plain[: self.inner.feed(bytes(plain))]

    def _read(self, enough: int) -> bool:
        """Decrypt until that many plain bytes wait; returns whether there may be more."""
        plain = self._plain
        while len(plain) < enough:
            try:
                piece = self._tls.read(RECORD_BYTES_MAX)
            except ssl.SSLWantReadError:
                return False
            if not piece:  # close_notify; the end of the socket follows
                return False
            plain += piece
        return True

    def take_events(self) -> Sequence[Any]:
        return self.inner.take_events()

    def take_outgoing(self) -> list[bytes]:
        if self._established and not self._ended:
            try:
                for piece in self.inner.take_outgoing():
                    self._tls.write(piece)
            except ssl.SSLError:  # the peer has begun something unsupported
                self._ended = True
        sealed = self._outgoing.read()
        return [sealed] if sealed else []

    def farewell(self) -> list[bytes]:
        """Send `close_notify`, so that the peer knows the end; nothing is packed afterwards."""
        self._ended = True
        if self._established:
            # It always raises, because the peer's close_notify is missing; ours is packed.
            with suppress(ssl.SSLError):
                self._tls.unwrap()
        return self.take_outgoing()
