"""Which bookies get a new ledger, and which one takes the place of another.

The rules are those of Apache's default, `RackawareEnsemblePlacementPolicyImpl` of BookKeeper 4.18:

- Bookies are chosen at random among those that take writes.
- Of a write quorum, neighbours in the ensemble are in different racks, as far as there are several
  (`minNumRacksPerWriteQuorum` of them) and their bookies suffice. If that is enforced
  (`enforceMinNumRacksPerWriteQuorum`), no choice leaves a write quorum with fewer racks.
- Who replaces a bookie is in its rack if possible, and then in another than its neighbours'.

A bookie whose connection has failed a while ago, or that had too many errors, is chosen only if
there is no other.

Invariant: no bookie has two positions of an ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.core.kernel.errors import StorageFailed

DEFAULT_RACK = "/default-rack"
"""Of bookies that nobody has said more of (`NetworkTopology.DEFAULT_RACK`)."""
TRIES: Final = 20
"""Of an ensemble whose racks are enforced: the first ones may leave no choice for the last."""
Members = Sequence[str | None]
"""The bookies of an ensemble; None where none is chosen yet."""


class Choice(Protocol):
    """Chance, as in `random.Random`."""

    def choice(self, among: Sequence[str], /) -> str: ...


class RackRules(Struct, frozen=True):
    """What is asked of the racks of a write quorum."""

    racks_min: int = 2
    """`minNumRacksPerWriteQuorum`."""
    enforced: bool = False
    """`enforceMinNumRacksPerWriteQuorum`: whether fewer are refused, and not only avoided."""
    aware: bool = True
    """`bookkeeperClientRackawarePolicyEnabled`: without, all bookies are as if in one rack, and
    nothing is enforced (`DefaultEnsemblePlacementPolicy`).
    """


class Placement:
    """See the module's docstring."""

    def __init__(
        self,
        writable: Callable[[], Collection[str]],
        rack_of: Callable[[str], str],
        is_suspect: Callable[[str], bool],
        chance: Choice,
        rules: RackRules | None = None,
    ) -> None:
        self.is_suspect = is_suspect
        """Whether a bookie has failed a while ago."""
        self._writable = writable
        self._rules = rules or RackRules()
        self._rack_of = rack_of if self._rules.aware else _same_rack
        self._enforced = self._rules.aware and self._rules.enforced
        self._chance = chance

    def has_enough(self, count: int) -> bool:
        """Whether so many bookies take writes."""
        return len(self._writable()) >= count

    def ensemble(self, striping: Striping) -> tuple[str, ...]:
        """Bookies for a new ledger; `StorageFailed` if there are too few, or too few racks."""
        for _ in range(TRIES if self._enforced else 1):
            members = [each for each in self._try_ensemble(striping) if each is not None]
            if len(members) == striping.ensemble:
                return tuple(members)
        size, count = striping.ensemble, len(self._writable())
        if count < size:
            raise StorageFailed(f"a ledger needs {size} bookies, and {count} take writes")
        raise StorageFailed(
            f"no {size} bookies that take writes have {self._racks_wanted(striping)} racks in each "
            f"write quorum of {striping.write}"
        )

    def _try_ensemble(self, striping: Striping) -> list[str | None]:
        members: list[str | None] = [None] * striping.ensemble
        for position in range(striping.ensemble):
            taken = {member for member in members if member is not None}
            members[position] = self._choose(members, position, striping, taken)
            if members[position] is None:
                break
        return members

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
        members: list[str | None] = list(ensemble)
        found: dict[int, str] = {}
        for position, bookie in failed.items():
            # Failed ones are in `ensemble`: they are not chosen for each other.
            taken = {*found.values(), *ensemble, *excluded}
            chosen = self._choose(members, position, striping, taken, self._rack_of(bookie))
            if chosen is not None and (suspects_too or not self.is_suspect(chosen)):
                members[position] = found[position] = chosen
        return found

    def _choose(
        self,
        members: Members,
        position: int,
        striping: Striping,
        taken: Collection[str],
        rack: str = "",
    ) -> str | None:
        """One in this rack, or in none to avoid, or else any; None if there is none."""
        candidates = sorted(set(self._writable()).difference(taken))
        if self._enforced:
            candidates = [
                each for each in candidates if self._has_racks(members, position, each, striping)
            ]
        candidates = [each for each in candidates if not self.is_suspect(each)] or candidates
        if not candidates:
            return None
        avoided = self._racks_avoided(members, position, striping)
        same = [bookie for bookie in candidates if self._rack_of(bookie) == rack]
        other = [bookie for bookie in candidates if self._rack_of(bookie) not in avoided]
        return self._chance.choice(same or other or candidates)

    def _racks_wanted(self, striping: Striping) -> int:
        return min(self._rules.racks_min, striping.write)

    def _racks_avoided(self, members: Members, position: int, striping: Striping) -> set[str]:
        """The racks of the neighbours that share write quorums with a position."""
        avoided = set()
        for step in range(1, self._racks_wanted(striping)):
            for other in (position - step, position + step):
                member = members[other % striping.ensemble]
                if other % striping.ensemble != position and member is not None:
                    avoided.add(self._rack_of(member))
        return avoided

    def _has_racks(self, members: Members, position: int, bookie: str, striping: Striping) -> bool:
        """Whether each write quorum may still have enough racks with a bookie at a position."""
        made = [bookie if at == position else member for at, member in enumerate(members)]
        wanted = self._racks_wanted(striping)
        for first in range(striping.ensemble):
            quorum = [made[at] for at in striping.write_set(first)]
            racks = {self._rack_of(member) for member in quorum if member is not None}
            if len(racks) + quorum.count(None) < wanted:
                return False
        return True


def _same_rack(_bookie: str) -> str:
    return DEFAULT_RACK
