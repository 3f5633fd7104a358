"""A nondeterministic finite automaton, built by Thompson's construction. Pure.

It is built of pieces, each with one entry and one exit. A state consumes a letter, or has empty
transitions, some of which apply only at the beginning or the end of the name. Sets of states are
cached with their successors (a lazy DFA), so most letters cost one lookup.

Invariants: there are at most `STATES_MAX` states, and the cached sets have at most
`REMEMBERED_STATES_MAX` in all; matching takes at most as many steps as the name has letters, times
the number of states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from msgspec import Struct

STATES_MAX: Final = 2_000
REMEMBERED_STATES_MAX: Final = 8_000
"""States in the cached successors, so that a cache takes half a megabyte at most."""


class TooLarge(Exception):
    """A pattern would need too many states."""


class Alphabet(Struct, frozen=True):
    """A set of letters: those in the ranges, or all others."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def has(self, letter: str) -> bool:
        return self.negated is not any(low <= letter <= high for low, high in self.ranges)


ANY: Final = Alphabet((("\n", "\n"),), negated=True)


class When(Enum):
    """The condition of an empty transition."""

    ALWAYS = 0
    AT_START = 1
    AT_END = 2


class AutomatonState(Struct):
    """See the module's docstring."""

    letters: Alphabet | None = None
    """The letters that it consumes; None for empty transitions."""
    next: list[int] = []
    when: When = When.ALWAYS


class Piece(Struct, frozen=True):
    """A part of the automaton, which can be copied for repetitions."""

    first: int
    last: int
    begin: int
    """Its first state; its states are `begin` up to `end`."""
    end: int


class Automaton:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._states: list[AutomatonState] = []
        self._end = -1
        self._start: frozenset[int] = frozenset()
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._known_states = 0

    @property
    def size(self) -> int:
        """The number of its states."""
        return len(self._states)

    # -- building -----------------------------------------------------------------------------

    def _add(self, state: AutomatonState) -> int:
        if len(self._states) >= STATES_MAX:
            raise TooLarge(f"the pattern needs more than {STATES_MAX} states")
        self._states.append(state)
        return len(self._states) - 1

    def letter(self, letters: Alphabet) -> Piece:
        return self._single(AutomatonState(letters))

    def border(self, *, at_start: bool) -> Piece:
        """A piece that matches only at the beginning or the end of the name."""
        return self._single(AutomatonState(when=When.AT_START if at_start else When.AT_END))

    def _single(self, state: AutomatonState) -> Piece:
        first = self._add(state)
        last = self._add(AutomatonState())
        state.next = [last]
        return Piece(first, last, first, last + 1)

    def row(self, pieces: Sequence[Piece]) -> Piece:
        """The concatenation of pieces."""
        if not pieces:
            empty = self._add(AutomatonState())
            return Piece(empty, empty, empty, empty + 1)
        for before, after in pairwise(pieces):
            self._states[before.last].next.append(after.first)
        return Piece(pieces[0].first, pieces[-1].last, pieces[0].begin, len(self._states))

    def any_of(self, pieces: Sequence[Piece]) -> Piece:
        if len(pieces) == 1:
            return pieces[0]
        first = self._add(AutomatonState(next=[piece.first for piece in pieces]))
        last = self._add(AutomatonState())
        for piece in pieces:
            self._states[piece.last].next.append(last)
        return Piece(first, last, pieces[0].begin, last + 1)

    def times(self, piece: Piece, low: int, high: int | None) -> Piece:
        """The repetition of a piece, `low` to `high` times; None for no upper limit."""
        count = max(low, 1 if high is None else high, 1)
        copies = [piece, *(self._copy(piece) for _ in range(count - 1))]
        first = self._add(AutomatonState(next=[copies[0].first]))
        last = self._add(AutomatonState())
        for before, after in pairwise(copies):
            self._states[before.last].next.append(after.first)
        self._states[copies[-1].last].next.append(last)
        if low == 0:
            self._states[first].next.append(last)
        for number, copy in enumerate(copies, 1):
            if number >= low and copy is not copies[-1]:
                self._states[copy.last].next.append(last)
        if high is None:
            self._states[copies[-1].last].next.append(copies[-1].first)
        if high == 0:
            self._states[first].next = [last]
        return Piece(first, last, piece.begin, last + 1)

    def _copy(self, piece: Piece) -> Piece:
        """A copy of a piece whose exit is not connected yet."""
        moved = len(self._states) - piece.begin
        for number in range(piece.begin, piece.end):
            state = self._states[number]
            inner = [one + moved for one in state.next if piece.begin <= one < piece.end]
            self._add(AutomatonState(state.letters, inner, state.when))
        return Piece(
            piece.first + moved, piece.last + moved, piece.begin + moved, piece.end + moved
        )

    def closed(self, whole: Piece) -> Automaton:
        """Complete the automaton with its only piece."""
        self._end = whole.last
        self._start = self._reach([whole.first], When.AT_START)
        return self

    # -- reading ------------------------------------------------------------------------------

    def matches(self, name: str) -> bool:
        """Whether the pattern matches the whole name."""
        states = self._start
        for letter in name:
            states = self._after(states, letter)
            if not states:
                return False
        at_start = (When.AT_START,) if not name else ()
        return self._end in self._reach(states, When.AT_END, *at_start)

    def _after(self, states: frozenset[int], letter: str) -> frozenset[int]:
        known = self._known.get((states, letter))
        if known is None:
            waiting = (self._states[number] for number in states)
            led = [
                one
                for state in waiting
                if state.letters is not None and state.letters.has(letter)
                for one in state.next
            ]
            known = self._reach(led)
            self._known_states += len(known) + 1
            if self._known_states > REMEMBERED_STATES_MAX:
                self._known.clear()
                self._known_states = len(known) + 1
            self._known[states, letter] = known
        return known

    def _reach(self, numbers: Iterable[int], *now: When) -> frozenset[int]:
        """All states reachable by empty transitions."""
        found: set[int] = set()
        open_ends = list(numbers)
        while open_ends:
            number = open_ends.pop()
            if number in found:
                continue
            found.add(number)
            state = self._states[number]
            if state.letters is None and (state.when is When.ALWAYS or state.when in now):
                open_ends += state.next
        return frozenset(found)
