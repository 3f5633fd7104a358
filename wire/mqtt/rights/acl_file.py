"""Rules for MQTT topics, in the form of Mosquitto's `acl_file` (mosquitto.conf(5) of 2.0). Pure.

    topic [read|write|readwrite|deny] FILTER      for the user named above; before the first one,
                                                  for clients that do not authenticate, besides the
                                                  rules of the user whose name they are given
    user NAME                                     the `topic` lines that follow are for this user
    pattern [read|write|readwrite|deny] FILTER    for everybody: %c stands for the client id, %u for
                                                  the user
    # ...                                         a comment

A user is a role here: that of a password, a token or a certificate. As with Mosquitto, a rule
without a word allows both, and one that denies decides, in whatever order they stand.

A pattern says nothing about a client whose name or id is empty, has a wildcard or a `/`
(CVE-2017-7650 of Mosquitto). A filter that is asked for is allowed if one rule covers all of it,
and denied if one denies a topic that it matches: so deliveries need not be looked at one by one.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from magnetar.core.security.judge import Ruling
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.mapping.names import is_explicit
from magnetar.wire.mqtt.matching.filter_sets import covers, overlap

SIGN: Final = re.compile("%[cu]")
UNSAFE: Final = frozenset("+#/")
"""What a value may not have that is put into a pattern."""


class TopicAccess(enum.IntFlag):
    """What a rule is about."""

    DENY = 0
    READ = 1
    WRITE = 2
    BOTH = 3


ACCESSES: Final[Mapping[str, TopicAccess]] = {
    "read": TopicAccess.READ,
    "write": TopicAccess.WRITE,
    "readwrite": TopicAccess.BOTH,
    "deny": TopicAccess.DENY,
}


class TopicRule(Struct, frozen=True):
    """One line of the file."""

    access: TopicAccess
    filter: str
    line: int

    def described(self, kind: str) -> str:
        word = next(word for word, access in ACCESSES.items() if access is self.access)
        return f"line {self.line} of mqtt.acl_file: {kind} {word} {self.filter}"


class RuledClient(NamedTuple):
    """A client as rules know it."""

    users: Collection[str]
    """The first is its name; none if it has no name."""
    client_id: str
    is_anonymous: bool
    """It has not authenticated, so the name, if it has one, is that of all who have not."""


class RuledFilter(NamedTuple):
    """A filter in both spellings, which are the same if it is of another namespace."""

    short: str
    full: str
    """With its namespace."""

    def beside(self, within: str) -> str:
        """The filter, spelled as the filter of a rule."""
        return self.full if is_explicit(within) else self.short


class TopicRules(Struct, frozen=True):
    """The rules of one file."""

    of_nobody: tuple[TopicRule, ...] = ()
    by_user: Mapping[str, tuple[TopicRule, ...]] = {}
    patterns: tuple[TopicRule, ...] = ()

    def ruling(self, client: RuledClient, wanted: TopicAccess, asked: RuledFilter) -> Ruling | None:
        """What the rules say of a client that wants to use all that a filter matches; None if
        nothing.
        """
        allowing = None
        for rule, kind, within in self._rules_for(client):
            filter = asked.beside(within)
            if rule.access is TopicAccess.DENY:
                if overlap(within, filter):
                    return Ruling(False, rule.described(kind))
            elif rule.access & wanted and allowing is None and _grants(within, filter):
                allowing = Ruling(True, rule.described(kind))
        return allowing

    def _rules_for(self, client: RuledClient) -> Iterator[tuple[TopicRule, str, str]]:
        """The rules, their kinds, and their filters for this client."""
        for user in client.users:
            for rule in self.by_user.get(user, ()):
                yield rule, "topic", rule.filter
        if client.is_anonymous:
            for rule in self.of_nobody:
                yield rule, "topic", rule.filter
        name = next(iter(client.users), "")
        for rule in self.patterns:
            within = _substituted(rule.filter, {"%c": client.client_id, "%u": name})
            if within:
                yield rule, "pattern", within


def _grants(within: str, filter: str) -> bool:
    """Whether a rule's filter covers another one. One that names a namespace is covered only by one
    that does so, too: `#` is about the topics of the listener.
    """
    return covers(within, filter) and is_explicit(within) == is_explicit(filter)


def _substituted(pattern: str, values: Mapping[str, str]) -> str:
    """A pattern for one client; empty if it is not for this one."""
    signs = set(SIGN.findall(pattern))
    if any(not values[sign] or not UNSAFE.isdisjoint(values[sign]) for sign in signs):
        return ""
    found = SIGN.sub(lambda sign: values[sign[0]], pattern)
    for is_special in (is_explicit, _is_of_server):
        if is_special(found) != is_special(pattern):
            return ""  # a client that calls itself `$SYS`
    return found


def _is_of_server(filter: str) -> bool:
    return filter.startswith("$")


# -- the file -------------------------------------------------------------------------------------


def parse(text: str) -> TopicRules:
    """The rules of a file; raises ValueError with the line that is wrong."""
    of_nobody: list[TopicRule] = []
    by_user: dict[str, list[TopicRule]] = {}
    patterns: list[TopicRule] = []
    rules = of_nobody
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if not word or word.startswith("#"):
            continue
        if word == "user":
            if not rest:
                raise ValueError(f"line {number}: `user` without a name")
            rules = by_user.setdefault(rest, [])
        elif word == "topic":
            rules.append(_rule(number, rest))
        elif word == "pattern":
            patterns.append(_rule(number, rest))
        else:
            raise ValueError(
                f"line {number}: it begins with {word[:40]!r}, and not with user, topic or pattern"
            )
    users = {name: tuple(found) for name, found in by_user.items()}
    return TopicRules(tuple(of_nobody), users, tuple(patterns))


def _rule(number: int, text: str) -> TopicRule:
    """A rule from what follows `topic` or `pattern`: a filter with spaces needs a word before."""
    word, space, filter = text.partition(" ")
    access = TopicAccess.BOTH
    if space:
        if word not in ACCESSES:
            words = ", ".join(ACCESSES)
            raise ValueError(f"line {number}: {word[:40]!r} is none of {words}")
        access, filter = ACCESSES[word], filter.strip()
    else:
        filter = word
    if filter.startswith(topics.SHARE):
        raise ValueError(f"line {number}: the rule of {filter[:100]!r} is that of its filter")
    if not topics.is_filter(filter):
        raise ValueError(f"line {number}: {filter[:100]!r} is no topic filter")
    return TopicRule(access, filter, number)


class AclFile:
    """The rules that are in force; those of the file as it was read last."""

    def __init__(self, text: str = "") -> None:
        self.rules = parse(text)

    def take(self, raw: bytes) -> None:
        """Put a file in force; raises ValueError if it cannot be."""
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8, from byte {error.start} on") from None
        self.rules = parse(text)
