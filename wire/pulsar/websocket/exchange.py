"""Between a WebSocket and the binary protocol: what a dialogue may do, and what it has to. Pure.

A *dialogue* (`producing.py`, `consuming.py`) is the client of one endpoint. It says commands to the
broker, as any client of the binary protocol, and texts to the peer; the layer carries both
(`layer.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from magnetar.wire.pulsar import commands_pb2 as pb

CLOSED_BY_BROKER = 1011
NOT_UNDERSTOOD = 1007
TRY_AGAIN_LATER = 1013
"""Codes of Close frames (RFC 6455 7.4.1, and its registry); Apache's own are numbers that no client
accepts.
"""
ATTEMPTS_MAX: Final = 10
"""So often a partition is attached again without a message in between, or `STEADY_MS`."""
STEADY_MS: Final = 60_000
"""What was attached for so long begins to count its attempts anew."""


class DialogueExchange(Protocol):
    """What a dialogue may do."""

    def command(self, kind: pb.BaseCommand.Type, command: Any, tail: bytes = b"") -> None:
        """Say something to the broker."""
        ...

    def text(self, document: Any) -> None:
        """Send a JSON document to the peer."""
        ...

    def attached(self) -> None:
        """All is attached: the WebSocket opens, if it has not."""
        ...

    def refused(self, code: int, reason: str) -> None:
        """The broker refuses, with an error of its own: so does the server, or else it closes."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Send a Close frame and end the connection."""
        ...

    def now_ms(self) -> int: ...

    def wake_in(self, milliseconds: int) -> None:
        """Have `Dialogue.woken` called then, or earlier; the last call counts."""
        ...


class Dialogue(Protocol):
    """See the module's docstring."""

    def attach(self, names: Sequence[str], *, numbered: bool) -> None:
        """Attach to these topics and partitions; `numbered` if messages have to say which of them
        they are of.
        """
        ...

    def grow(self, names: Sequence[str]) -> None:
        """Attach to these, too: they were added."""
        ...

    def hear(self, command: pb.BaseCommand, tail: bytes) -> None:
        """What the broker says."""
        ...

    def say(self, text: str) -> None:
        """What the peer says, once it is attached."""
        ...

    def settle(self) -> None:
        """The peer has said all that was received together."""
        ...

    def woken(self) -> None:
        """The time has come; see `DialogueExchange.wake_in`."""
        ...

    def over(self) -> None:
        """The connection is closed, for any reason."""
        ...
