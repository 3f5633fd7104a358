"""The memory for the response to one connection's next read, reserved before that is built.

While there is plenty, nothing is asked: there is room for a whole frame, and that is what is
reserved while the disk is read. When memory is short, the size of a response is found first, and
its memory claimed (`core/link/memory/claims.py`): small ones, those of a recovery (which fences
with its ledger's key) and those of high priority have some that is kept back for them. Anybody can
fence, and ask for priority: a connection that has shown that it receives goes before those that
have not, which share what is left to them. A batch ends early then: it has a part of what is left,
so that each further one is smaller, and never less than a small response or its first entry.

    nothing --ask--> waits --granted--> reserved --release--> nothing
       +------------ask, take_plenty------^

Invariants: at most one read waits or has memory reserved; what is granted is released, also when
the connection ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.responses import RESPONSE_BYTES
from magnetar.bookie.rpc.messages import BatchRead, BookieMessage
from magnetar.bookie.rpc.wire import Call
from magnetar.core.link.connection import Connection
from magnetar.core.link.memory.claims import ReplyClass

BATCHES: Final = 4
"""A batch may have this part of what is left."""


class ReadMemory:
    """See the module's docstring."""

    def __init__(
        self, connection: Connection, limits: RequestLimits, granted: Callable[[], None]
    ) -> None:
        """`granted` is called when a read that waited has its memory."""
        self._connection = connection
        self._claims = connection.link.outgoing.claims
        self._granted = granted
        self._batch_bytes_max = limits.max_batch_read_size
        self._plenty_bytes = RESPONSE_BYTES + max(
            limits.netty_max_frame_size_bytes, limits.max_batch_read_size
        )
        """The largest response there should be."""
        self._call: Call | None = None
        """The read that waits or has its memory."""
        self._wanted = self._reserved = 0
        self._kind = ReplyClass.LARGE
        """Of the reply that is claimed."""
        self._has_received = False
        """Whether its client has received as much as proves something, once."""

    @property
    def is_plentiful(self) -> bool:
        """Whether any response may be built."""
        return self._claims.is_plentiful(self._plenty_bytes)

    def waits(self, call: Call) -> bool:
        """Whether this read waits for memory."""
        return self._call is call and not self._reserved

    def has(self, call: Call, size: int) -> bool:
        """Whether so much is reserved for this read."""
        return self._call is call and self._reserved >= size

    def bytes_max(self, call: Call) -> int:
        """The largest batch that this read may have."""
        reserved = self._reserved if self._call is call else self._batch_bytes_max
        return min(reserved, self._batch_bytes_max)

    def take_plenty(self, call: Call) -> bool:
        """Reserve memory for the largest response, if there is plenty."""
        if not self.is_plentiful:
            return False
        self.release()
        return self._take(call, ReplyClass.LARGE, self._plenty_bytes)

    def ask(self, call: Call, size: int) -> bool:
        """Reserve memory for a response of that size, or of a batch whose first entry has it. If
        there is none, False, and `granted` is called when there is.
        """
        if self.has(call, size):
            return True
        self.release()
        request = call.request
        self._has_received = self._has_received or self._connection.reads
        if isinstance(request, BatchRead):
            size = max(size, min(request.bytes_max, self._batch_bytes_max, self._share()))
        kind = self._class(request, size)
        if self._take(call, kind, size):
            return True
        if kind is ReplyClass.LARGE and self._connection.reads:
            kind = ReplyClass.READING
            if self._take(call, kind, size):
                return True
        self._call, self._wanted, self._kind = call, size, kind
        self._claims.wait(self, kind, size)
        return False

    def _share(self) -> int:
        left = self._claims.left(ReplyClass.LARGE)
        if not left and self._connection.reads:
            left = self._claims.left(ReplyClass.READING)
        return max(left // BATCHES, self._claims.small_bytes)

    def _class(self, request: BookieMessage, size: int) -> ReplyClass:
        some: Any = request
        fences = getattr(some, "fence", False)
        if size <= self._claims.small_bytes:
            return ReplyClass.BRIEF if fences else ReplyClass.SMALL
        if fences:
            return ReplyClass.RECOVERING if self._has_received else ReplyClass.URGENT
        preferred = getattr(some, "high_priority", False)
        return ReplyClass.PREFERRED if preferred else ReplyClass.LARGE

    def _take(self, call: Call, kind: ReplyClass, size: int) -> bool:
        if not self._claims.take(kind, size):
            return False
        self._call, self._reserved = call, size
        self._claims.hold(self, kind, size)
        return True

    def granted(self) -> None:
        """There is memory."""
        self._reserved = self._wanted
        self._claims.hold(self, self._kind, self._reserved)
        self._granted()

    @property
    def holds(self) -> bool:
        """Whether its client has not received all that it had memory for."""
        connection = self._connection
        return bool(self._reserved or connection.outbox_bytes or connection.packed_bytes)

    def release(self) -> None:
        """The response is packed, which is counted, or there will be none."""
        if self._call is None:
            return
        if self._reserved:
            self._claims.release(self._reserved)
        else:
            self._claims.forget(self)
        self._call, self._reserved = None, 0
