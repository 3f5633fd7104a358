"""A wire under a wire: it transforms bytes for the one above it, which is unaware of that.

Invariant: the wire above is not fed before its frame may be whole. Each call copies all that waits,
and a large frame may come in thousands of pieces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.wire import Wire

PLAIN_BYTES_MAX: Final = 64 * 1024
"""Plain bytes that are collected before the wire above is fed."""


class Layer(ABC):
    """See the module's docstring. Subclasses transform."""

    packs_unasked = True

    def __init__(self, inner: Wire) -> None:
        self.inner = inner
        self._plain = bytearray()
        """Plain bytes of an incomplete frame, which the wire above has not taken."""

    @property
    def frame_bytes_wanted(self) -> int:
        """0: the layer itself holds what is incomplete."""
        return 0

    @property
    def bytes_held(self) -> int:
        return len(self._plain)

    @abstractmethod
    def feed(self, data: bytes) -> int: ...

    @abstractmethod
    def take_outgoing(self) -> list[bytes]: ...

    @abstractmethod
    def farewell(self) -> list[bytes]:
        """The last bytes of the connection, which tell the peer that it ends in order; nothing is
        packed afterwards.
        """
        ...

    def body_in(self, begin: bytes) -> tuple[int, int]:
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        self.feed(frame.whole())

    def take_events(self) -> Sequence[Any]:
        return self.inner.take_events()

    def _feed_inner(self) -> None:
        """Feed the wire above, unless its frame cannot be whole."""
        plain = self._plain
        if plain and len(plain) >= self.inner.frame_bytes_wanted:
            del plain[: self.inner.feed(bytes(plain))]

    def _inner_farewell(self) -> list[bytes]:
        """The last bytes of the wire above, if that is a layer, too."""
        return self.inner.farewell() if isinstance(self.inner, Layer) else []
