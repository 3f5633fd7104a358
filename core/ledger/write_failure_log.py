"""Log lines about a log or cursor that cannot be written, and the name of a log in them.

Each change is logged, not each attempt, because clients retry as fast as they can. A failure of
another kind than the last one is a change.
"""

from __future__ import annotations

import logging

from magnetar.core.kernel.errors import BrokerError, InvalidName
from magnetar.core.kernel.names import TopicName

log = logging.getLogger(__name__)


def log_name(ledger_name: str) -> str:
    """The name of a log in log lines: that of its topic, if it has one."""
    try:
        return TopicName.of_managed_ledger(ledger_name).full
    except InvalidName:
        return ledger_name


class WriteFailureLog:
    """One per log or cursor."""

    __slots__ = ("kind",)

    def __init__(self) -> None:
        self.kind: type[BrokerError] | None = None
        """The error of the last write; None if it succeeded."""

    def began(self, name: str, what: str, error: BrokerError) -> None:
        """Log that `what` has failed, unless the last failure was of the same kind."""
        if self.kind is not type(error):
            self.kind = type(error)
            log.warning("%s: %s: %s", name, what, error)

    def ended(self, name: str) -> None:
        """Log that writes succeed again. Call it after a failure."""
        self.kind = None
        log.warning("%s: is written again", name)
