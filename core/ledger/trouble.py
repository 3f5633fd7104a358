"""What is logged of a log that cannot be written: each change, not each attempt.

Clients send again what was refused, as quickly as they may. A failure of another kind than the last
one is a change as well.

What is not here: who is refused because of it (`core.topic`).
"""

from __future__ import annotations

import logging

from core.errors import BrokerError

log = logging.getLogger(__name__)


class Trouble:
    """Of one log. Nothing is wrong to begin with."""

    __slots__ = ("kind",)

    def __init__(self) -> None:
        self.kind: type[BrokerError] | None = None
        """How the last write failed; None if it did not."""

    def began(self, name: str, what: str, error: BrokerError) -> None:
        """`what` has failed; or it has again, and that is no news."""
        if self.kind is not type(error):
            self.kind = type(error)
            log.warning("%s: %s: %s", name, what, error)

    def ended(self, name: str) -> None:
        """To be called if there was any."""
        self.kind = None
        log.warning("%s: is written again", name)
