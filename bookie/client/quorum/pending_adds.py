"""Adds that wait for their quorum, and what a change of the ensemble does to them. Pure.

The rules are those of `LedgerHandle` and `PendingAddOp` of BookKeeper 4.18:

    add        sent to the write set of the current ensemble, and queued
    answer     counts for its position, if the bookie that gave it is still at that position
    done       the head of the queue, when A of its write set have acknowledged it, and nothing is
               being changed; so adds are done in the order of their ids
    failure    of a bookie still at its position begins a change; more of them join it
    change     the caller finds other bookies, writes a segment that begins at `first_affected` to
               the metadata, and calls `replace`; adds that had been sent to a replaced position are
               sent to the new bookie, which must acknowledge them as well
    absence    if there is no other bookie, `do_without` the failed one: it stays in the ensemble,
               and adds are done by the others, as long as every write set has A of them. (Apache
               does this, for any failure, with `delayEnsembleChange`.) It is present again with its
               next acknowledgement

Invariants:
- An add is done only if A bookies acknowledged it that are in the write set of the segment which
  the metadata has for it. So nothing is done between the first failure and the end of the change: a
  segment that is not written yet would not be found by a recovery (#1591), and `first_affected`
  stays true while it is being written (#4651).
- The confirmed entry and length grow, in step, and only by adds that are done.
- After `fail` nothing is done any more, also if a `done` calls it.

One add here is a run of entries with one write set. With E = W all entries have the same one; else
the caller adds them one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format.entries import Run
from magnetar.core.ports.ledger_store import Done


class PendingAdd:
    """One add: its run, and the positions that have acknowledged it."""

    __slots__ = ("acknowledged", "done", "length", "lost", "positions", "run")

    def __init__(
        self, run: Run, length: int, positions: tuple[int, ...], done: Done | None
    ) -> None:
        self.run = run
        self.length = length
        """Bytes of payload of the ledger, up to and with this run."""
        self.positions = positions
        self.acknowledged: set[int] = set()
        self.lost: set[int] = set()
        """The positions that will not acknowledge it, unless they get another bookie."""
        self.done = done

    def may_reach(self, quorum: int) -> bool:
        """Whether so many may acknowledge it."""
        return len(self.positions) - len(self.lost - self.acknowledged) >= quorum


class PendingAdds:
    """See the module's docstring."""

    def __init__(self, striping: Striping, ensemble: Sequence[str]) -> None:
        """`ensemble` has the ids of the bookies of the last segment, in their order."""
        striping.check()
        if len(ensemble) != striping.ensemble:
            raise ValueError(f"{len(ensemble)} bookies for an ensemble of {striping.ensemble}")
        self._striping = striping
        self._ensemble = list(ensemble)
        self._queue: deque[PendingAdd] = deque()
        self._failed: dict[int, str] = {}
        """Bookies of the current ensemble that have failed, by position."""
        self._absent: dict[int, str] = {}
        """Those that it does without."""
        self._closed = False
        self.last_confirmed = -1
        self.length_confirmed = 0

    @property
    def ensemble(self) -> tuple[str, ...]:
        return tuple(self._ensemble)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def failed(self) -> Mapping[int, str]:
        """The bookies to replace, by position; while there is one, nothing is done."""
        return self._failed

    @property
    def first_affected(self) -> int:
        """The first entry of the segment that a change begins."""
        return self.last_confirmed + 1

    @property
    def absent(self) -> Mapping[int, str]:
        """The bookies that it does without, by position."""
        return self._absent

    def add(self, run: Run, length: int, done: Done | None) -> PendingAdd:
        """Queue a run that is about to be sent to its `positions`; `done` is called at most once.

        Adds come in the order of their ids. While a change is under way they are queued, and are
        sent to the current ensemble as well: those for a failed position are sent once more later.
        """
        pending = PendingAdd(run, length, self._striping.write_set(run.first), done)
        self._queue.append(pending)
        return pending

    def acknowledge(self, pending: PendingAdd, position: int, bookie: str) -> None:
        """A bookie has stored a run."""
        if self._ensemble[position] != bookie:
            return  # it was replaced: nobody will look for the run there
        self._absent.pop(position, None)
        pending.acknowledged.add(position)
        self._complete()

    def report_failure(self, position: int, bookie: str, pending: PendingAdd | None = None) -> bool:
        """A bookie could not store something, this run for example. True if that begins a change;
        False if one is under way, or the bookie has been replaced, or nobody needs it.
        """
        if self._closed or self._ensemble[position] != bookie:
            return False
        if pending is not None:
            pending.lost.add(position)
        if position in self._absent and (pending is None or pending.may_reach(self._striping.ack)):
            return False
        begins = not self._failed
        self._absent.pop(position, None)
        self._failed[position] = bookie
        return begins

    def replace(self, bookies: Mapping[int, str]) -> list[tuple[PendingAdd, int]]:
        """The metadata has these bookies at these positions now, from `first_affected` on.

        Returns what is to be sent, and to which position. If other bookies have failed meanwhile,
        they are in `failed`, and another change is to be made before anything is done.
        """
        for position, bookie in bookies.items():
            self._ensemble[position] = bookie
            self._failed.pop(position, None)
            self._absent.pop(position, None)
        resent = []
        for pending in self._queue:
            for position in pending.positions:
                if position in bookies:
                    pending.acknowledged.discard(position)
                    pending.lost.discard(position)
                    resent.append((pending, position))
        self._complete()  # also of runs that have no replaced position
        return resent

    def do_without(self, positions: Collection[int]) -> bool:
        """There is nobody to replace these failed bookies; False if too few would be left."""
        absent = {*self._absent, *positions}
        for first in range(self._striping.ensemble):
            present = [p for p in self._striping.write_set(first) if p not in absent]
            if len(present) < self._striping.ack:
                return False
        if not all(pending.may_reach(self._striping.ack) for pending in self._queue):
            return False
        for position in positions:
            self._absent[position] = self._failed.pop(position)
        self._complete()
        return True

    def retry_absent(self) -> bool:
        """Have absent bookies replaced after all, if there are any: that begins a change."""
        if self._closed or self._failed or not self._absent:
            return False
        self._failed, self._absent = self._absent, {}
        return True

    def fail(self) -> list[PendingAdd]:
        """End: nothing is done any more. Returns what was pending, in order."""
        self._closed = True
        pending, self._queue = list(self._queue), deque()
        return pending

    def _complete(self) -> None:
        queue, quorum = self._queue, self._striping.ack
        while (
            queue and not self._failed and not self._closed and len(queue[0].acknowledged) >= quorum
        ):
            pending = queue.popleft()
            self.last_confirmed = pending.run.last
            self.length_confirmed = pending.length
            if pending.done is not None:
                pending.done(None)
