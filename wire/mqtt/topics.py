"""Topic names and topic filters (4.7): their validity, and matching. Pure.

Both are levels separated by `/`; levels may be empty, so `/a` has two. In a filter `+` matches one
level and a final `#` its parent level and all below: `a/#` matches `a`. Filters that begin with a
wildcard do not match names that begin with `$` [MQTT-4.7.2-1].
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.core.kernel.errors import InvalidName

SHARE: Final = "$share/"
SYS: Final = "$SYS"
"""The first level of the server's own topics."""
TOPIC_BYTES_MAX: Final = 65_535
"""The length of a string has two bytes (1.5.4) [MQTT-4.7.3-3]."""
CACHED_BYTES_MAX: Final = 512
"""The largest topic that caches keep: those of devices have about 50 bytes, and whoever sends ever
new ones of 64 KiB would fill a cache of some thousands with a gigabyte."""
LEVELS_MAX: Final = 128
"""Levels of a valid topic: the cost of matching must be bounded. Devices use about ten; mosquitto
has 200 (`TOPIC_HIERARCHY_LIMIT`, 2.0)."""


class SharedFilter(NamedTuple):
    """`$share/group/filter` (4.8.2)."""

    group: str
    filter: str


def is_sys(topic: str) -> bool:
    """Whether a topic, or all that a filter matches, is the server's own."""
    return topic.startswith(SYS) and topic[len(SYS) : len(SYS) + 1] in ("", "/")


def is_name(topic: str) -> bool:
    """Whether the text is a valid topic name."""
    return is_name_of_any_depth(topic) and not is_deep(topic)


def is_name_of_any_depth(topic: str) -> bool:
    """Whether it would be one for the specification, which has no limit of levels."""
    return bool(topic) and "#" not in topic and "+" not in topic and _is_short(topic)


def is_deep(topic: str) -> bool:
    """Whether the text has too many levels."""
    return topic.count("/") >= LEVELS_MAX


def _is_short(text: str) -> bool:
    return len(text.encode()) <= TOPIC_BYTES_MAX


def is_filter(text: str) -> bool:
    """Whether the text is a valid filter, not a shared one: a wildcard is a whole level, and `#`
    the last one [MQTT-4.7.1-1, -2].
    """
    if not text or not _is_short(text) or is_deep(text):
        return False
    levels = text.split("/")
    for place, level in enumerate(levels):
        if level == "#":
            if place < len(levels) - 1:
                return False
        elif level != "+" and ("#" in level or "+" in level):
            return False
    return True


def check_filter(text: str) -> None:
    """Raise `InvalidName` unless the text is a valid filter that is not shared."""
    if text.startswith(SHARE):
        raise InvalidName(f"{text!r} is a shared subscription: its filter follows the group")
    if "\0" in text:
        raise InvalidName(f"{text!r} has U+0000")
    if not is_filter(text):
        raise InvalidName(f"{text!r} is no topic filter")


def shared(text: str) -> SharedFilter | None:
    """The group and its filter; None for a filter that is not shared.

    Raises `ValueError` for an invalid shared filter: the group must not be empty or have wildcards,
    and a filter must follow [MQTT-4.8.2-1, -2].
    """
    if not text.startswith(SHARE):
        return None
    group, slash, rest = text.removeprefix(SHARE).partition("/")
    if not group or "#" in group or "+" in group or not slash or not is_filter(rest):
        raise ValueError(f"{text!r} is no shared subscription")
    return SharedFilter(group, rest)


def matches(filter: str, topic: str) -> bool:
    """Whether the filter, which is not shared, matches the topic name. The reference for the faster
    trees.
    """
    if topic.startswith("$") and filter[0] in "#+":
        return False
    wanted, levels = filter.split("/"), topic.split("/")
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place == len(levels):
            return False
        if level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels) or (len(wanted) == len(levels) + 1 and wanted[-1] == "#")
