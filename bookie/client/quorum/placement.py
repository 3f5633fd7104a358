"""Which bookies get a new ledger, and which one takes the place of another.

The rules are those of Apache's default, `RackawareEnsemblePlacementPolicyImpl` of BookKeeper 4.18:

- Bookies are chosen at random among those that take writes.
- Of a write quorum, neighbours in the ensemble are in different racks, as far as there are several
  (`minNumRacksPerWriteQuorum` of them) and their bookies suffice.
- Who replaces a bookie is in its rack if possible, and then in another than its neighbours'.

A bookie whose connection has failed a while ago, or that had too many errors, is chosen only if
there is no other.

Invariant: no bookie has two positions of an ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.core.kernel.errors import StorageFailed

DEFAULT_RACK = "/default-rack"
"""Of bookies that nobody has said more of (`NetworkTopology.DEFAULT_RACK`)."""


class Choice(Protocol):
    """Chance, as in `random.Random`."""

    def choice(self, among: Sequence[str], /) -> str: ...


class Placement:
    """See the module's docstring."""

    def __init__(
        self,
        writable: Callable[[], Collection[str]],
        rack_of: Callable[[str], str],
        is_suspect: Callable[[str], bool],
        chance: Choice,
        racks_min: int = 2,
    ) -> None:
        self.is_suspect = is_suspect
        """Whether a bookie has failed a while ago."""
        self._writable = writable
        self._rack_of = rack_of
        self._chance = chance
        self._racks_min = racks_min

    def has_enough(self, count: int) -> bool:
        """Whether so many bookies take writes."""
        return len(self._writable()) >= count

    def ensemble(self, striping: Striping) -> tuple[str, ...]:
        """Bookies for a new ledger; `StorageFailed` if there are too few."""
        members: list[str] = []
        for position in range(striping.ensemble):
            avoided = self._racks_avoided(members, position, striping)
            found = self._choose(members, "", avoided)
            if found is None:
                raise StorageFailed(
                    f"a ledger needs {striping.ensemble} bookies, and {len(members)} take writes"
                )
            members.append(found)
        return tuple(members)

    def substitutes(
        self,
        ensemble: Sequence[str],
        failed: Mapping[int, str],
        striping: Striping,
        *,
        suspects_too: bool = False,
        excluded: Collection[str] = (),
    ) -> Mapping[int, str]:
        """Bookies in the place of failed ones, by position, for as many as there are; `excluded`
        ones are on their way out.
        """
        members, found = list(ensemble), {}
        for position, bookie in failed.items():
            avoided = self._racks_avoided(members, position, striping)
            # Failed ones are in `ensemble`: they are not chosen for each other.
            taken = [*members, *ensemble, *excluded]
            chosen = self._choose(taken, self._rack_of(bookie), avoided)
            if chosen is not None and (suspects_too or not self.is_suspect(chosen)):
                members[position] = found[position] = chosen
        return found

    def _racks_avoided(self, members: Sequence[str], position: int, striping: Striping) -> set[str]:
        """The racks of the neighbours that share write quorums with a position."""
        distance = min(self._racks_min, striping.write) - 1
        avoided = set()
        for step in range(1, distance + 1):
            for other in (position - step, (position + step) % striping.ensemble):
                if other != position and 0 <= other < len(members):
                    avoided.add(self._rack_of(members[other]))
        return avoided

    def _choose(self, excluded: Collection[str], rack: str, avoided: Collection[str]) -> str | None:
        """One in this rack, or in none to avoid, or else any; None if there is none."""
        candidates = sorted(set(self._writable()) - set(excluded))
        candidates = [each for each in candidates if not self.is_suspect(each)] or candidates
        if not candidates:
            return None
        same = [bookie for bookie in candidates if self._rack_of(bookie) == rack]
        other = [bookie for bookie in candidates if self._rack_of(bookie) not in avoided]
        return self._chance.choice(same or other or candidates)
