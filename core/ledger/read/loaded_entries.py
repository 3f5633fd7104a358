"""The memory for entries that are read from storage for consumers, of all subscriptions together.

Each subscription reads a run ahead, of its log or of a compacted ledger, and holds it until
consumers have taken it. Thousands whose consumers hardly receive would hold gigabytes, which an
output that is bounded does not prevent. So all of them share `bytes_max`
(`managedLedgerMaxReadsInFlightSizeInMB` of Pulsar is about the same).

    a load   may be as long as what all may have allows, divided by those that hold or load a run;
             it begins when there is room for what it is expected to bring, in order. One that has
             brought nothing for a second (its bookies do not answer) holds up nobody any more
    a run    is let go of, the oldest first, when all runs are too long; whoever held it loads it
             again when its consumers go on

Invariants: who begins a load ends it; one load goes on always, however large its entry is, and
the run that came last is never let go of.
"""

from __future__ import annotations

from typing import Final, Protocol

import trio

BYTES_MAX: Final = 32 * 1024 * 1024
SHARE_BYTES_MIN: Final = 16 * 1024
"""Of a load; an entry is loaded whole, however large it is."""
LATE_SECONDS: Final = 1.0
"""After so long a load counts no more."""


class RunHolder(Protocol):
    """Whoever holds a run."""

    def forget(self) -> None:
        """Let go of it."""
        ...


class LoadedEntries:
    """See the module's docstring."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._runs: dict[RunHolder, int] = {}
        """Bytes, by who holds them; the oldest first."""
        self.held_bytes = 0
        self.expected_bytes = 0
        """Of the loads that count."""
        self._loads: dict[int, tuple[float, int]] = {}
        """When each began, and the bytes that it is expected to bring; the oldest first."""
        self._begun = 0
        self._turn = trio.Lock()
        self._ended = trio.Event()

    @property
    def share(self) -> int:
        """The bytes that a load may bring."""
        return max(self._bytes_max // (len(self._runs) + len(self._loads) + 1), SHARE_BYTES_MIN)

    async def begin(self, size: int) -> int:
        """Wait for one's turn to load so much; returns what `end` wants."""
        if self._turn.locked() or not self._has_room(size):
            async with self._turn:
                while not self._has_room(size):
                    with trio.move_on_after(LATE_SECONDS):
                        await self._ended.wait()
        self._begun += 1
        self._loads[self._begun] = trio.current_time(), size
        self.expected_bytes += size
        return self._begun

    def _has_room(self, size: int) -> bool:
        late = trio.current_time() - LATE_SECONDS
        while self._loads and self.expected_bytes + size > self._bytes_max // 2:
            number = next(iter(self._loads))
            if self._loads[number][0] > late:
                return False
            self._forget(number)
        return True

    def _forget(self, number: int) -> None:
        _, size = self._loads.pop(number, (0.0, 0))
        self.expected_bytes -= size

    def end(self, load: int) -> None:
        """A load has ended, with whatever result."""
        self._forget(load)
        if self._turn.locked():
            self._ended.set()
            self._ended = trio.Event()

    def hold(self, who: RunHolder, size: int) -> None:
        """It holds a run, instead of what it held before."""
        self.let_go(who)
        self._runs[who] = size
        self.held_bytes += size
        while self.held_bytes > self._bytes_max and len(self._runs) > 1:
            next(iter(self._runs)).forget()

    def let_go(self, who: RunHolder) -> None:
        """It holds nothing any more. Plain call, perhaps not for the first time."""
        self.held_bytes -= self._runs.pop(who, 0)
