"""Log lines about a log or cursor that cannot be written, and the name of a log in them.

Each change is logged, not each attempt: clients send again what was refused, as quickly as they
may. A failure of another kind than the last one is also a change.

Not here: which clients are refused because of it (`core.topic`).
"""

from __future__ import annotations

import logging
from typing import Final

from magnetar.core.kernel.errors import BrokerError, InvalidName
from magnetar.core.kernel.names import TopicName

log = logging.getLogger(__name__)

NO_WRITES: Final = "storage takes no writes: the disk is full, or has failed"
"""Why producers are refused, and the server is not ready."""


def log_name(ledger_name: str) -> str:
    """What a log is called in logs: as users write the topic, where it is a topic's."""
    try:
        return TopicName.of_managed_ledger(ledger_name).full
    except InvalidName:
        return ledger_name


class WriteFailureLog:
    """Of one log, or one cursor. Nothing is wrong to begin with."""

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
