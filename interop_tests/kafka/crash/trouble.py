"""The server goes away in the middle of transactions, and comes back, at moments that are planned.

A loop of transactions says which moment has come; if it is the next one of `PLAN`, the server goes
and returns before the loop is answered. Then the application goes on, or it has had enough.
"""

from __future__ import annotations

from typing import Any

MOMENTS = ["committed", "committing", "stored", "with offsets", "sent"]
"""Of a transaction; the last first, so that the next one comes only in another transaction."""
GO_ON, ABORT, BEGIN_ANEW = "go on", "abort", "begin anew"
"""What an application does with a transaction: the last is to leave it to a new producer."""
PLAN = [(moment, GO_ON) for moment in MOMENTS]
PLAN += [(moment, after) for after in (ABORT, BEGIN_ANEW) for moment in MOMENTS[2:]]


class GaveUp(Exception):
    """The application does not want this transaction any more, and perhaps not its producer."""

    def __init__(self, after: str) -> None:
        super().__init__(after)
        self.begins_anew = after == BEGIN_ANEW


class Trouble:
    """The server is killed or stopped, and started, as `PLAN` says."""

    def __init__(self, server: Any, going: str) -> None:
        self._server = server
        self._going = going
        self._left = list(PLAN)

    @property
    def over(self) -> bool:
        return not self._left

    def at(self, moment: str) -> None:
        """A transaction has come so far."""
        if self.over or self._left[0][0] != moment:
            return
        _, after = self._left.pop(0)
        getattr(self._server, self._going)()
        self._server.start()
        if after != GO_ON:
            raise GaveUp(after)
