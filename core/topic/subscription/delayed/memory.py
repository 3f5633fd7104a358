"""The memory for the times of delayed entries, of all subscriptions together. Pure.

Thousands of subscriptions with many delayed entries each would hold gigabytes, although each of
them is bounded. So together they know no more than a million times: who knows most gives up some,
and reads the entries again when they are nearly due.

Invariant: `times` is the sum of what all holders have told; one that drops times which no longer
count tells so with its next call.
"""

from __future__ import annotations

from typing import Final, Protocol

TIMES_MAX: Final = 1_000_000
"""Of 24 to 60 bytes each."""


class TimesHolder(Protocol):
    """Whoever knows times."""

    @property
    def known(self) -> int: ...

    def put_off(self) -> None:
        """Know fewer."""
        ...


class DelayedMemory:
    """See the module's docstring."""

    def __init__(self, times_max: int = TIMES_MAX) -> None:
        self.times = 0
        self._times_max = times_max
        self._holders: set[TimesHolder] = set()

    @property
    def room(self) -> int:
        return self._times_max - self.times

    def changed(self, who: TimesHolder, by: int) -> None:
        """It knows so many more, or fewer. Plain call, in which others may know fewer."""
        self.times += by
        if not who.known:
            self._holders.discard(who)
        elif by > 0:
            self._holders.add(who)
            while self.times > self._times_max:
                max(self._holders, key=lambda each: each.known).put_off()
