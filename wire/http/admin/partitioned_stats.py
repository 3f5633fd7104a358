"""The stats of a partitioned topic: those of its partitions, added up. Pure.

Counts, rates and sizes add up; an average is that of the parts; of times the last counts, or the
first where it is about the oldest; what is attached is listed; names are the first part's.

Invariant: every part is added once, and what was added is not changed.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

LISTS: Final = ("publishers", "consumers")
AVERAGES: Final = ("averageMsgSize", "avgMessagesPerEntry")
OLDEST: Final = (
    "earliestMsgPublishTimeInBacklog",
    "earliestMsgPublishTimeInBacklogs",
    "topicCreationTimeStamp",
)
"""The lowest that is a time at all."""
HIGHEST: Final = ("oldestBacklogMessageAgeSeconds", "topicEpoch")
LATEST: Final = ("TimeStamp", "Timestamp")
LIMITS: Final = ("backlogQuotaLimitSize", "backlogQuotaLimitTime")
"""Each partition's own: they stay what they are."""


class Sum:
    """Parts are added one by one, so that others have their turn between thousands."""

    def __init__(self) -> None:
        self.total: Json = {}
        self._parts = 0
        self._nested: dict[str, Sum] = {}

    def add(self, part: Json) -> None:
        """One more part."""
        self._parts += 1
        total = self.total
        for key, value in part.items():
            if key == "subscriptions":
                self._add_subscriptions(value)
            elif key in LISTS:
                total.setdefault(key, []).extend(value)
            elif key in total:
                total[key] = self._joined(key, total[key], value)
            else:
                total[key] = dict(value) if isinstance(value, dict) else value

    def _add_subscriptions(self, found: dict[str, Json]) -> None:
        """By name; a partition that has not got one has nothing to add."""
        shown = self.total.setdefault("subscriptions", {})
        for name, subscription in found.items():
            nested = self._nested.setdefault(name, Sum())
            nested.add(subscription)
            shown[name] = nested.total

    def _joined(self, key: str, left: Any, right: Any) -> Any:
        if isinstance(left, bool):
            return left or right
        if isinstance(left, dict):
            return {**left, **right} if isinstance(right, dict) else left
        if isinstance(left, int | float) and isinstance(right, int | float):
            return self._number(key, left, right)
        return left if left is not None else right

    def _number(self, key: str, left: float, right: float) -> float:
        if key in AVERAGES:
            mean = (left * (self._parts - 1) + right) / self._parts
            return round(mean) if isinstance(left, int) and isinstance(right, int) else mean
        if key in OLDEST:
            return min(left, right) if left > 0 and right > 0 else max(left, right)
        if key in HIGHEST or key.endswith(LATEST):
            return max(left, right)
        return left if key in LIMITS else left + right


def summed(parts: list[Json]) -> Json:
    """All parts at once."""
    whole = Sum()
    for part in parts:
        whole.add(part)
    return whole.total
