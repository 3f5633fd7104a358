"""A connection without a socket, as far as sessions need one."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.memory.pauses import PAUSE_STORING


class Line:
    """The part of a connection that sessions use, with its recorded state."""

    kept_bytes = 0
    """Of the last `keep`."""

    def __init__(self, peer: str = "1.2.3.4:1") -> None:
        self.peer = peer
        self.host = peer.rpartition(":")[0]
        self.reached_at = ("127.0.0.1", 9092)
        self.refusal = ""
        self.tls: ssl.SSLObject | None = None
        self.congested = self.takes_too_little = self.answers = False
        self.received_bytes = self.taken_bytes = self.outbox_bytes = 0
        self.packed_bytes = 0
        self.outbox: list[bytes] = []
        self.storing_bytes = 0
        self.paused = 0
        """The present reasons to pause."""
        self.introduced = self.open = True
        self.ending: str | None = None

    def touch(self) -> None: ...

    def probe(self) -> None: ...

    def packed(self, size: int) -> None:
        """Count packed bytes, which are never sent."""
        self.packed_bytes += size
        self.congested = self.packed_bytes > LinkLimits().outbox_high_bytes

    def keep(self, size: int) -> None:
        self.kept_bytes = size

    def share(self) -> int:
        return LinkLimits().sending_bytes_max

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        self.packed_bytes += size
        try:
            yield
        finally:
            self.packed_bytes -= size

    def storing(self, size: int) -> None:
        self.storing_bytes += size
        if self.storing_bytes >= LinkLimits().storing_bytes_per_connection_max:
            self.pause(PAUSE_STORING)

    def stored(self, size: int, *, proves: bool = True) -> None:
        self.storing_bytes -= size
        if 2 * self.storing_bytes <= LinkLimits().storing_bytes_per_connection_max:
            self.resume(PAUSE_STORING)

    def has_room_for(self, size: int) -> bool:
        return size <= LinkLimits().partial_bytes_max

    def has_room_to_wait(self, size: int) -> bool:
        return True

    def has_answered(self, size: int) -> None: ...

    def complain(self, kind: str, text: str) -> None: ...

    def begin(self) -> None: ...

    def settle(self) -> None: ...

    def will_write(self) -> None: ...

    def pause(self, reason: int) -> None:
        self.paused |= reason

    def resume(self, reason: int) -> None:
        self.paused &= ~reason

    def end(self, reason: str, last_words: bytes = b"") -> None:
        self.ending = self.ending or reason
