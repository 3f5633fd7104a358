"""From the subject of a certificate to a name, by rules of Kafka's (`ssl.principal.mapping.rules`).

    RULE:pattern/replacement/     if the pattern matches the whole subject, its replacement
    RULE:pattern/replacement/L    the same in lower case; U in upper case
    DEFAULT                       the subject itself

Rules are separated by commas, and the first that matches decides. In the replacement `$1` is a
group, `$0` the match, `${name}` a named group, and a backslash takes the next letter as it is; a
number without a group stands for itself (`SslPrincipalMapper.java` of Kafka 4.3). A pattern is
searched for again in what it matched, as Java's `replaceAll` does.

Patterns are Python's, which agree with Java's in all that Kafka documents; `(?<name>...)` is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from magnetar.core.kernel.errors import Invalid

_ESCAPED: Final = r"(?:\\.|[^\\/])*"
"""Anything, up to a slash that has no backslash before it."""
_RULE: Final = re.compile(rf"RULE:({_ESCAPED})/({_ESCAPED})/([LU]?)")
_SEPARATED: Final = re.compile(
    rf"\s*(DEFAULT|RULE:{_ESCAPED}/{_ESCAPED}/[LU]?.*?|.*?)\s*(?:,\s*|$)"
)
_JAVA_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_SPECIAL: Final = re.compile(r"\\(.)|\$(?:\{(\w+)\}|([0-9]+))")


class _Rule(NamedTuple):
    """One rule; without a pattern it is DEFAULT."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        found = self.pattern.sub(partial(_replaced, self.replacement), subject)
        if self.case:
            return found.lower() if self.case == "L" else found.upper()
        return found


class MappingRules:
    """See the module's docstring."""

    def __init__(self, text: str) -> None:
        """Raises `Invalid` with a sentence."""
        self._rules = _rules_in(text)

    def name(self, subject: str) -> str | None:
        """The name of a subject in RFC 2253's form; None if no rule matches."""
        for rule in self._rules:
            found = rule.apply(subject)
            if found is not None:
                return found
        return None


def _rules_in(text: str) -> Sequence[_Rule]:
    written = [each[1] for each in _SEPARATED.finditer(text.strip())]
    rules = [_rule(each) for each in written if each]  # Kafka ignores empty ones
    if not rules:
        raise Invalid("there is no rule")
    return rules


def _rule(text: str) -> _Rule:
    if text == "DEFAULT":
        return _Rule(None, "", "")
    found = _RULE.fullmatch(text)
    if found is None:
        raise Invalid(f"{text!r} is neither DEFAULT nor RULE:pattern/replacement/ with L or U")
    written, replacement, case = found.groups()
    try:
        pattern = re.compile(_JAVA_GROUP.sub("(?P<", written))
    except re.error as error:
        raise Invalid(f"{text!r}: the pattern is wrong: {error}") from None
    for special in _SPECIAL.finditer(replacement):
        if special[2] and special[2] not in pattern.groupindex:
            raise Invalid(f"{text!r}: there is no group {special[2]}")
        if special[3] and not pattern.groups and special[3] != "0":
            raise Invalid(f"{text!r}: the pattern has no groups")
    return _Rule(pattern, replacement, case)


def _replaced(replacement: str, match: re.Match[str]) -> str:
    return _SPECIAL.sub(partial(_special, match), replacement)


def _special(match: re.Match[str], special: re.Match[str]) -> str:
    literal, named, digits = special.groups()
    if literal is not None:
        return literal
    if named is not None:
        return match[named] or ""
    group, groups, used = int(digits[0]), match.re.groups, 1
    if group > groups:
        return special[0]
    while used < len(digits) and group * 10 + int(digits[used]) <= groups:
        group, used = group * 10 + int(digits[used]), used + 1
    return (match[group] or "") + digits[used:]
