r"""Patterns of topic names that clients send, matched in time proportional to the name. Pure.

Theory. Brokers of other makes use RE2 for these, which matches in linear time (KIP-848; RE2/J in
`TopicsPattern.java`). Python's `re` backtracks, and a few letters can keep it busy for hours, so it
must not run patterns of clients. Here a pattern becomes a finite automaton (`automaton.py`), which
never backtracks.

    pattern := branch { '|' branch }        branch := { atom [ '*' | '+' | '?' | '{m,n}' ] [ '?' ] }
    atom    := letter | '.' | '[...]' | '(...)' | '(?:...)' | '^' | '$' | '\' letter | '\Q...\E'

Other syntax of RE2 (flags, Unicode classes, word boundaries) is refused, and so is syntax that RE2
refuses: backreferences, lookaround.

Invariant: parsing any pattern ends soon, with `BadPattern` or at most `STATES_MAX` states.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from magnetar.core.patterns.automaton import ANY, Alphabet, Automaton, Piece, TooLarge

PATTERN_LETTERS_MAX: Final = 1_000
DEPTH_MAX: Final = 50
"""The nesting of brackets."""
CACHED_MAX: Final = 32
"""Cached patterns; each takes up to a megabyte."""
COUNT_MAX: Final = 1_000
"""RE2's own limit of a counted repetition."""

_DIGIT: Final = (("0", "9"),)
_WORD: Final = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE: Final = (("\t", "\n"), ("\f", "\r"), (" ", " "))
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_COUNT: Final = re.compile("0*[0-9]{1,4}")
_QUOTE: Final = re.compile(r"\\.", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "v": "\v"}


class BadPattern(Exception):
    """The pattern is invalid; the text is for its client."""


@lru_cache(CACHED_MAX)
def compiled(text: str) -> Automaton:
    """The automaton of a pattern."""
    if len(text) > PATTERN_LETTERS_MAX:
        raise BadPattern(f"a pattern has at most {PATTERN_LETTERS_MAX} letters")
    reader = _Reader(_unquoted(text))
    try:
        whole = reader.alternatives(0)
        if reader.at < len(reader.text):
            raise BadPattern("there is a ')' too many")
        return reader.machine.closed(whole)
    except TooLarge as error:
        raise BadPattern(str(error)) from error


def _unquoted(text: str) -> str:
    r"""The pattern with a backslash before each letter of `\Q...\E`, instead of these."""
    parts, at = [], 0
    while (found := _QUOTE.search(text, at)) is not None:
        parts.append(text[at : found.start()])
        if found[0] == "\\Q":
            end = text.find("\\E", found.end())
            quoted = text[found.end() : end if end >= 0 else len(text)]
            parts += (each if each.isalnum() else f"\\{each}" for each in quoted)
            at = end + 2 if end >= 0 else len(text)
        else:
            parts.append(found[0])
            at = found.end()
    return "".join((*parts, text[at:]))


class _Reader:
    """Parses a pattern from left to right, and builds its automaton."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.machine = Automaton()

    def alternatives(self, depth: int) -> Piece:
        if depth > DEPTH_MAX:
            raise BadPattern("brackets are nested too deeply")
        pieces = [self._branch(depth)]
        while self._takes("|"):
            pieces.append(self._branch(depth))
        return self.machine.any_of(pieces)

    def _branch(self, depth: int) -> Piece:
        pieces = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            pieces.append(self._repeated(self._atom(depth)))
        return self.machine.row(pieces)

    def _repeated(self, atom: Piece) -> Piece:
        if self._takes("*"):
            low, high = 0, None
        elif self._takes("+"):
            low, high = 1, None
        elif self._takes("?"):
            low, high = 0, 1
        elif self._takes("{"):
            low, high = self._counts()
        else:
            return atom
        self._takes("?")  # non-greedy: no difference for a whole match
        if self.at < len(self.text) and self.text[self.at] in "*+?{":
            raise BadPattern("a repetition of a repetition needs brackets")
        return self.machine.times(atom, low, high)

    def _counts(self) -> tuple[int, int | None]:
        """The counts in braces: `m`, `m,` or `m,n`."""
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(end, self.at)].partition(",")
        if not _COUNT.fullmatch(low) or (high and not _COUNT.fullmatch(high)):
            raise BadPattern("a repetition is counted as {m}, {m,} or {m,n}")
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if least > COUNT_MAX or (most is not None and not least <= most <= COUNT_MAX):
            raise BadPattern(f"a repetition may be counted up to {COUNT_MAX}")
        return least, most

    def _atom(self, depth: int) -> Piece:
        letter = self._next()
        match letter:
            case "(":
                return self._group(depth)
            case "[":
                return self.machine.letter(self._class())
            case ".":
                return self.machine.letter(ANY)
            case "^":
                return self.machine.border(at_start=True)
            case "$":
                return self.machine.border(at_start=False)
            case "\\":
                return self.machine.letter(self._escaped())
            case "*" | "+" | "?" | "{":
                raise BadPattern(f"there is nothing before {letter!r} to be repeated")
            case _:
                return self.machine.letter(Alphabet(((letter, letter),)))

    def _group(self, depth: int) -> Piece:
        if self._takes("?"):
            named = self._takes("P<") or (self._takes("<") and self._peek() not in "=!")
            if named:
                self.at = self.text.find(">", self.at) + 1
            if not (self.at if named else self._takes(":")):
                raise BadPattern("flags, and looking around, are not understood here")
        found = self.alternatives(depth + 1)
        if not self._takes(")"):
            raise BadPattern("there is a '(' without its ')'")
        return found

    def _escaped(self) -> Alphabet:
        letter = self._next()
        if letter.lower() in _CLASSES:
            return Alphabet(_CLASSES[letter.lower()], negated=letter.isupper())
        letter = _CONTROLS.get(letter, letter)
        if letter.isalnum():
            raise BadPattern(f"'\\{letter}' is not understood here")
        return Alphabet(((letter, letter),))

    def _class(self) -> Alphabet:
        """A character class in square brackets."""
        negated, first = self._takes("^"), True
        ranges: list[tuple[str, str]] = []
        while first or not self._takes("]"):
            first = False
            low = self._one_of_class(ranges)
            if low is None:
                continue
            high: str | None = low
            if self._peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._one_of_class([])
            if high is None or high < low:
                raise BadPattern("a range of letters goes from one to a later one")
            ranges.append((low, high))
        return Alphabet(tuple(ranges), negated=negated)

    def _one_of_class(self, ranges: list[tuple[str, str]]) -> str | None:
        """One letter of a class; None for several, which are added to `ranges`."""
        letter = self._next()
        if letter == "[" and self._peek() == ":":
            raise BadPattern("named classes of letters are not understood here")
        if letter != "\\":
            return letter
        found = self._escaped()
        if (
            not found.negated
            and len(found.ranges) == 1
            and found.ranges[0][0] == found.ranges[0][1]
        ):
            return found.ranges[0][0]
        if found.negated:
            raise BadPattern("a class that is all but something cannot be part of another here")
        ranges += found.ranges
        return None

    def _next(self) -> str:
        if self.at >= len(self.text):
            raise BadPattern("it ends in the middle")
        self.at += 1
        return self.text[self.at - 1]

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _takes(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True
