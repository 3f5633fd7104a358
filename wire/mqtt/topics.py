"""Topic names and topic filters (4.7): which are valid, and which filter matches which name. Pure.

Both are levels with `/` between them; levels may be empty, so `/a` has two. In a filter `+` stands
for one level and `#`, at the end, for all that follow and for the level above it: `a/#` matches
`a`. Names that begin with `$` are matched by no filter that begins with a wildcard [MQTT-4.7.2-1].
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.wire.mqtt.codec.fields import STRING_BYTES_MAX

SHARE: Final = "$share/"
LEVELS_MAX: Final = 128
"""More are refused as invalid: matching must not depend on what a stranger sends. Devices have
about ten; mosquitto has 200 (`TOPIC_HIERARCHY_LIMIT`, 2.0)."""


class SharedFilter(NamedTuple):
    """`$share/group/filter` (4.8.2)."""

    group: str
    filter: str


def is_name(topic: str) -> bool:
    """Whether a message may be published to it."""
    return bool(topic) and "#" not in topic and "+" not in topic and _is_short(topic)


def _is_short(text: str) -> bool:
    return text.count("/") < LEVELS_MAX and len(text.encode()) <= STRING_BYTES_MAX


def is_filter(text: str) -> bool:
    """Whether it may be subscribed to, `$share` aside: wildcards fill a level, `#` is the last
    one [MQTT-4.7.1-1, -2].
    """
    if not text or not _is_short(text):
        return False
    levels = text.split("/")
    for place, level in enumerate(levels):
        if level == "#":
            if place < len(levels) - 1:
                return False
        elif level != "+" and ("#" in level or "+" in level):
            return False
    return True


def shared(text: str) -> SharedFilter | None:
    """The group and its filter; None for a filter that is not shared.

    Raises `ValueError` for one that begins as one and is none: the group is at least a character
    and holds no wildcard, and a filter follows it [MQTT-4.8.2-1, -2].
    """
    if not text.startswith(SHARE):
        return None
    group, slash, rest = text.removeprefix(SHARE).partition("/")
    if not group or "#" in group or "+" in group or not slash or not is_filter(rest):
        raise ValueError(f"{text!r} is no shared subscription")
    return SharedFilter(group, rest)


def matches(filter: str, topic: str) -> bool:
    """Whether a message of that topic is for that filter, which is not shared. The reference for
    what is quicker.
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
