"""Topic filters as the sets of topic names that they match (4.7). Pure.

A topic name is a filter that matches itself only. No filter that begins with a wildcard has a topic
that begins with `$` [MQTT-4.7.2-1].
"""

from __future__ import annotations

from typing import Final

_WILDCARDS: Final = ("+", "#")


def covers(one: str, other: str) -> bool:
    """Whether every topic that the other filter matches is also matched by the one."""
    if other.startswith("$") and one.startswith(_WILDCARDS):
        return False
    wanted, levels = one.split("/"), other.split("/")
    if wanted == ["+", "#"]:
        return True  # every name has a first level
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place == len(levels) or levels[place] == "#":
            return False
        if level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)


def overlap(one: str, other: str) -> bool:
    """Whether there is a topic that both filters match."""
    for first, second in ((one, other), (other, one)):
        if first.startswith("$") and second.startswith(_WILDCARDS):
            return False
    wanted, levels = one.split("/"), other.split("/")
    for first, second in zip(wanted, levels, strict=False):
        if "#" in (first, second):
            return True
        if first != second and "+" not in (first, second):
            return False
    longer = max(wanted, levels, key=len)
    rest = longer[min(len(wanted), len(levels)) :]
    return not rest or rest == ["#"]
