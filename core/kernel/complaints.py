"""Log lines about misbehaving peers, in bounded numbers.

A broken client tries again a thousand times a second, and each attempt would log the same line. So
a complaint has a kind and an address: the first few of each pair are logged at once, the following
ones are counted, and after a while one line reports the count. At level debug, each is logged.

Invariant: per kind and address at most `LINES_MAX` lines and one count in `WINDOW_SECONDS`; at most
`KEYS_MAX` pairs are counted apart; all others are one address.
"""

from __future__ import annotations

import logging
from typing import Final

from magnetar.core.kernel.clock import Clock

log = logging.getLogger(__name__)

WINDOW_SECONDS: Final = 60.0
LINES_MAX: Final = 3
KEYS_MAX: Final = 1_000
OTHERS: Final = "other addresses"


class Window:
    """The recent complaints of one kind and from one address."""

    __slots__ = ("begun", "count", "last")

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.count = 0
        self.last = ""


class Complaints:
    """See the module's docstring."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, str], Window] = {}
        """In the order in which they began."""

    def say(self, kind: str, host: str, text: str) -> None:
        """Log or count a complaint about a peer at that address; the text names it."""
        key = (kind, host)
        window = self._windows.get(key)
        if window is None:
            self.count_up()
            if len(self._windows) >= KEYS_MAX:
                key = (kind, OTHERS)
            window = self._windows.setdefault(key, Window(self._clock.monotonic()))
        window.count += 1
        window.last = text
        log.log(logging.INFO if window.count <= LINES_MAX else logging.DEBUG, "%s", text)
        if window.count == LINES_MAX:
            log.info("%s: more of the kind (%s) are counted from now on", key[1], kind)

    def count_up(self) -> None:
        """Log the counts of windows that are over. Call it from time to time."""
        now = self._clock.monotonic()
        while self._windows:
            key = next(iter(self._windows))
            window = self._windows[key]
            if now - window.begun < WINDOW_SECONDS:
                return
            del self._windows[key]
            more = window.count - LINES_MAX
            if more > 0:
                text = "%s: %d more of the kind (%s) in %.0f s, the last of them: %s"
                log.info(text, key[1], more, key[0], now - window.begun, window.last)
