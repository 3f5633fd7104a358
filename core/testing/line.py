"""A connection without a socket, as far as sessions ask for one."""

from __future__ import annotations

from core.link.loop import LinkLimits


class Line:
    """What a session asks of its connection, and what came of it."""

    def __init__(self, peer: str = "1.2.3.4:1") -> None:
        self.peer = peer
        self.host = peer.rpartition(":")[0]
        self.reached_at = ("127.0.0.1", 9092)
        self.refusal = ""
        self.congested = False
        self.packed_bytes = 0
        self.paused = 0
        """The reasons that there are just now."""
        self.ending: str | None = None

    def touch(self) -> None: ...

    def packed(self, size: int) -> None:
        """As if nothing were sent on from now on: what is packed stays."""
        self.packed_bytes += size
        self.congested = self.packed_bytes > LinkLimits().outbox_high_bytes

    def begin(self) -> None: ...

    def settle(self) -> None: ...

    def will_write(self) -> None: ...

    def pause(self, reason: int) -> None:
        self.paused |= reason

    def resume(self, reason: int) -> None:
        self.paused &= ~reason

    def end(self, reason: str) -> None:
        self.ending = self.ending or reason
