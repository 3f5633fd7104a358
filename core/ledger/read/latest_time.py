"""The latest time of the messages in the ledger that is being written (`time_lookup.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.entry.forms import form_of

LATEST: Final = "magnetar.latest-time"
"""Property of one ledger: the latest time of its messages."""
UNKNOWN: Final = "-1"
"""The value if it must be read from the entries."""
UNKNOWN_TIME: Final = {LATEST: UNKNOWN}
"""Properties of a ledger that was sealed for its writer."""


def latest_in(sent: bytes) -> int:
    """The latest time in the metadata of an entry; -1 if it has none."""
    return form_of(sent).latest_time(sent)


class LatestTime:
    """See the module's docstring."""

    __slots__ = ("_latest", "_noted_all")

    def __init__(self) -> None:
        self._latest = -1
        self._noted_all = True

    def begin(self, *, mixed: bool) -> None:
        """A ledger is created. Of logs that are not mixed nothing is noted."""
        self._latest, self._noted_all = -1, mixed

    def note(self, tails: Sequence[bytes]) -> None:
        """Entries are being written, here without the broker's headers."""
        for sent in tails:
            time_ms = latest_in(sent)
            if time_ms > self._latest:
                self._latest = time_ms

    def noted(self) -> dict[str, str]:
        """The properties of a mixed ledger that ends now."""
        known = self._noted_all and self._latest >= 0
        return {LATEST: str(self._latest)} if known else UNKNOWN_TIME
