"""What a query's filters say of where its rows are, so that the rest is not read. Pure.

Spark hands a batch query's filters to the source, joined by AND, and applies all of them again to
what was read (`DataSourceReader.pushFilters`). So what is left out must be certain, and what is not
understood is read.

Topic, partition and ledger are the same for all rows of a range; entry ids and offsets are in order
within a log. Publish times are the producers', and may be any: they say something only to who
knows how far they are from the times at which messages were stored (`publishTimeSlackMs`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.reading_plan import PlannedLedger
from magnetar.spark_connector.planning.ranges import EntryRange

ANY_NUMBER: Final = 1 << 63
_COMPARISONS: Final[dict[type[Filter], Callable[[Any, Any], Any]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda found, wanted: found in wanted,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}


class Span(Struct, frozen=True):
    """Numbers from `least` to `most`, both included."""

    least: int = -ANY_NUMBER
    most: int = ANY_NUMBER

    def meet(self, other: Span) -> Span:
        return Span(max(self.least, other.least), min(self.most, other.most))


class Pruning(Struct, frozen=True):
    """The filters of a query."""

    filters: tuple[Filter, ...] = ()
    slack_ms: int = -1
    """How far publish times are from those at which messages were stored; -1 if nobody knows."""

    def admits_log(self, log: str) -> bool:
        """Whether rows of this topic, or partition, may be wanted."""
        name = TopicName.parse(log)
        partition = max(name.partition_index, 0)
        return self._admits("topic", name.base.full) and self._admits("partition", partition)

    def admits_ledger(self, ledger: PlannedLedger) -> bool:
        if not self._admits("ledger_id", ledger.id):
            return False
        if self.slack_ms < 0:
            return True
        wanted = self.span("publish_time")
        too_early = 0 < ledger.closed_ms < wanted.least - self.slack_ms
        too_late = ledger.begun_ms > wanted.most + self.slack_ms
        return not too_early and not too_late

    def clipped(self, ranges: Iterable[EntryRange]) -> Iterable[EntryRange]:
        """The ranges without entries whose ids are not wanted."""
        wanted = self.span("entry_id")
        for one in ranges:
            first, last = max(one.first, wanted.least), min(one.last, wanted.most)
            if first <= last:
                size = one.bytes * (last - first + 1) // (one.last - one.first + 1)
                yield replace(one, first=first, last=last, bytes=size)

    def span(self, column: str) -> Span:
        """Between which numbers a column must be; times are milliseconds since 1970."""
        found = Span()
        for one in self._of(column):
            found = found.meet(_span(one))
        return found

    def _of(self, column: str) -> Iterable[Filter]:
        return (one for one in self.filters if getattr(one, "attribute", None) == (column,))

    def _admits(self, column: str, value: object) -> bool:
        """Whether a row with that value may be wanted."""
        return all(_admits(one, column, value) is not False for one in self.filters)


UNPRUNED: Final = Pruning()


def _admits(one: Filter, column: str, value: object) -> bool | None:
    """Whether the filter lets a value pass; None if it says nothing of it."""
    if isinstance(one, Not):
        inner = _admits(one.child, column, value)
        return None if inner is None else not inner
    if getattr(one, "attribute", None) != (column,):
        return None
    if isinstance(one, IsNull | IsNotNull):
        return isinstance(one, IsNotNull)
    compare = _COMPARISONS.get(type(one))
    wanted = getattr(one, "value", None)
    if compare is None or wanted is None or not _alike(value, wanted):
        return None
    return bool(compare(value, wanted))


def _alike(value: object, wanted: object) -> bool:
    """Whether they can be compared; a list of In's may have null."""
    if isinstance(wanted, tuple):
        return all(type(each) is type(value) for each in wanted)
    return type(wanted) is type(value)


def _span(one: Filter) -> Span:
    match one:
        case EqualTo(_, value) | EqualNullSafe(_, value):
            return _between([value], [value])
        case GreaterThan(_, value) | GreaterThanOrEqual(_, value):
            return _between([value], [])
        case LessThan(_, value) | LessThanOrEqual(_, value):
            return _between([], [value])
        case In(_, values) if values:
            return _between(values, values)
    return Span()


def _between(lows: Sequence[Any], highs: Sequence[Any]) -> Span:
    """From the lowest to one more than the highest, for times are not whole milliseconds: a number
    too many does no harm.
    """
    try:
        least = min(map(_number, lows), default=-ANY_NUMBER)
        most = max(map(_number, highs), default=ANY_NUMBER - 1)
    except TypeError:
        return Span()
    return Span(least, most + 1)


def _number(value: Any) -> int:
    """Rounded down, if it is a time."""
    if isinstance(value, datetime):
        return math.floor(value.timestamp() * 1000)
    if isinstance(value, int):
        return value
    raise TypeError(f"{value!r} is no number")
