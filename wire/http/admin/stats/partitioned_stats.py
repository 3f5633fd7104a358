"""The stats of a partitioned topic, combined from those of its partitions. Pure.

Counts, rates and sizes are added; averages are averaged; of times the latest is taken, or the
earliest for the oldest message; attached clients are listed; names are the first part's.

Invariant: every part is added once, and adding does not change the part.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

LISTS: Final = ("publishers", "consumers", "hangingTransactions")
AVERAGES: Final = ("averageMsgSize", "avgMessagesPerEntry")
OLDEST: Final = (
    "earliestMsgPublishTimeInBacklog",
    "earliestMsgPublishTimeInBacklogs",
    "topicCreationTimeStamp",
)
"""The lowest value that is a valid time."""
HIGHEST: Final = ("oldestBacklogMessageAgeSeconds", "topicEpoch")
LATEST: Final = ("TimeStamp", "Timestamp")
LIMITS: Final = ("backlogQuotaLimitSize", "backlogQuotaLimitTime")
"""Limits that apply to each partition, and are not added."""


class Sum:
    """A running sum: parts are added one by one, so that the caller can yield in between."""

    def __init__(self) -> None:
        self.total: Json = {}
        self._parts = 0
        self._nested: dict[str, Sum] = {}

    def add(self, part: Json) -> None:
        """Add one part."""
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
        """Add subscriptions by name; a partition without one adds nothing to it."""
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
    """The sum of all parts."""
    whole = Sum()
    for part in parts:
        whole.add(part)
    return whole.total
