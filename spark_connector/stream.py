"""The micro-batches of a stream: what the next one reads, and how far the stream is.

Spark stores an offset for each batch before it runs, as JSON, and compares such texts:

    {"v": 1}                                         fresh: the query has never read anything
    {"init": {LOG: PLACE}, "pos": {LOG: PLACE}, "v": 1}

`pos` is where the next batch begins in each topic or partition: `[ledger, entry, offset]` of the
next entry. `init` is where this batch began in logs that are new to it.

Spark asks for the first offset twice, and again after a restart before the first batch is done,
and stores nothing before there is one (all seen with 4.3). If `latest` meant the end each time,
what is sent in between would be skipped. So the first offset is fresh, and the first batch, though
it may be empty, stores in `init` what was meant. An error would end the query: a server that does
not answer is asked again at the next trigger, and the offset stays.

Invariants: batches meet without a gap, in each log; a batch that is planned again reads the same
entries; equal positions are equal texts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.reading_plan import EntryPlace, Place, ReadingPlan
from magnetar.spark_connector import offsets
from magnetar.spark_connector.errors import (
    ConnectorError,
    NotOursError,
    OptionError,
    RefusedError,
    ServiceError,
    lose,
)
from magnetar.spark_connector.options import SourceOptions
from magnetar.spark_connector.planning.admission import shares_of
from magnetar.spark_connector.planning.planner import Places, Planner, Plans
from magnetar.spark_connector.planning.ranges import between, is_another
from magnetar.spark_connector.reading.range_reader import Task

log = logging.getLogger(__name__)
VERSION: Final = 1
Offset = dict[str, Any]
"""As Spark stores it."""
FRESH: Final[Offset] = {"v": VERSION}
NOT_READ: Final = (
    "is in the checkpoint, and not among the topics of this query: it was left out of them, or the "
    "checkpoint is that of another query"
)


class StreamOffset(Struct, frozen=True, forbid_unknown_fields=True):
    """See the module's docstring."""

    v: int
    pos: dict[str, Place] | None = None
    """None before the first batch; empty if there is no topic yet."""
    init: dict[str, Place] = {}

    @property
    def is_fresh(self) -> bool:
        return self.pos is None

    @property
    def places(self) -> dict[str, Place]:
        return self.pos or {}

    def encoded(self) -> Offset:
        """As a dictionary, with keys in order."""
        pos = self.places
        parts = {"init": self.init, "pos": pos} if self.init else {"pos": pos}
        return {name: _sorted(part) for name, part in parts.items()} | {"v": self.v}


def _sorted(places: Mapping[str, Place]) -> dict[str, list[int]]:
    found = sorted(places.items())
    return {topic: [each.ledger_id, each.entry_id, each.index] for topic, each in found}


def decoded(stored: Offset) -> StreamOffset:
    """What Spark has kept; a `ConnectorError` if it is not ours."""
    try:
        found = msgspec.convert(stored, StreamOffset)
    except msgspec.MsgspecError as error:
        raise ConnectorError(
            f"the checkpoint has an offset of another source, or a damaged one: {error}"
        ) from error
    if found.v != VERSION:
        raise ConnectorError(f"the checkpoint has an offset of version {found.v}, not {VERSION}")
    return found


class MicroBatches:
    """See the module's docstring. It lives in the driver, as long as the query runs."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planner = Planner(options)
        self._first: dict[str, Place] = {}
        """Where logs begin for this query: what is resolved once stays."""
        self._target: Places | None = None
        """With AvailableNow, where everything ends."""
        self._began_at = time.monotonic()
        self._held: set[str] = set()
        """Logs on which the server has a cursor of this query."""
        self._planned: tuple[Offset, Plans] | None = None
        """The end of the next batch, and the plans that it was found with: its tasks are made of
        them a moment later, and the server is asked once for both.
        """
        self._newest: Plans | None = None
        """What the server said last."""

    def latest(self, start: Offset, *, limited: bool) -> Offset:
        """Where the next batch ends; `start` if there is nothing to read."""
        begun = decoded(start)
        try:
            plans = self._newest = self._plans(begun.places, fresh=begun.is_fresh)
            places = self._places(begun, plans)
            self._hold(places)
            ends = self._ends(places, plans)
            if limited:
                ends = self._admitted(places, ends, plans)
        except (RefusedError, NotOursError):
            raise
        except ServiceError as error:
            if self._target is not None:  # no news would be taken for the end
                raise
            log.warning("asked again at the next trigger: %s", error)
            return start
        if ends == begun.pos:
            return start
        self._began_at = time.monotonic()
        new = {topic: place for topic, place in places.items() if topic not in begun.places}
        end = StreamOffset(VERSION, dict(ends), new).encoded()
        self._planned = end, plans
        return end

    def _plans_to(self, end: Offset, ends: Places) -> Plans:
        """The plans with which this end was found, once; else the server is asked."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[0] == end:
            return planned[1]
        return self._plans(ends, fresh=False)

    def _plans(self, known: Places, *, fresh: bool) -> Plans:
        """What the server says of each log. Only a query that has read nothing yet, or is to fail
        when messages are lost, insists on topics that are named: others may have been deleted.
        """
        return self._planner.plans(known, lenient=not (fresh or self._options.fail_on_data_loss))

    def _hold(self, places: Places) -> None:
        """Have the server keep what is behind these places, where it does not yet."""
        if self._options.subscription:
            new = {topic: place for topic, place in places.items() if topic not in self._held}
            if new:
                self._planner.service.move_cursors(self._options.subscription, new)
                self._held |= new.keys()

    def done(self, end: Offset) -> None:
        """A batch is done: Spark says so while it plans the one after it, and of the last one
        before a query stops it never does (seen with 4.3; `progress.py` is the cure).
        """
        places = decoded(end).places
        if self._options.subscription and places:
            self._planner.service.follow(self._options.subscription, places)

    def newest(self) -> Offset | None:
        """Where everything ends, for Spark's progress, which asks right after `latest`: as the
        server has said last. None if it has never said.
        """
        try:
            plans = self._planner.plans() if self._newest is None else self._newest
        except (ServiceError, OptionError):
            return None
        ends = {topic: self._options.end_of(plan) for topic, plan in plans.items()}
        return StreamOffset(VERSION, ends).encoded()

    def stop_where_it_ends_now(self) -> None:
        """Trigger.AvailableNow: read what is there, and no more."""
        lenient = not self._options.fail_on_data_loss
        plans = self._planner.plans(lenient=lenient)
        self._target = {topic: self._options.end_of(plan) for topic, plan in plans.items()}

    def tasks(self, start: Offset, end: Offset, parallelism: int) -> list[Task]:
        """The tasks of a batch."""
        begun, ended = decoded(start), decoded(end)
        starts, ends = begun.places | ended.init, ended.places
        if all(starts.get(topic) == place for topic, place in ends.items()):
            return []
        plans = self._plans_to(end, ends)
        for topic, place in list(starts.items()):
            if topic in ends and ends[topic] != place:
                starts[topic] = self._check(topic, place, plans.get(topic))
                # of what begins at offset 0, only the end tells one topic from another
                self._check_end(topic, ends[topic], plans.get(topic))
        return self._planner.tasks(plans, starts, ends, parallelism)

    # -- where logs are -----------------------------------------------------------------------

    def _places(self, begun: StreamOffset, plans: Plans) -> dict[str, Place]:
        """Where the next batch begins in each log. What the query is not told to read any more has
        its place kept, for when it is told again; what has been deleted has none.
        """
        found = {}
        for topic, place in begun.places.items():
            checked = self._check(topic, place, plans.get(topic))
            if topic in plans or not self._planner.reads(TopicName.parse(topic)):
                found[topic] = checked
            else:  # it leaves the offset: who takes its name later is read from its beginning
                self._first.pop(topic, None)
                self._held.discard(topic)
        fresh = {topic: plan for topic, plan in plans.items() if topic not in found}
        unknown = {topic: plan for topic, plan in fresh.items() if topic not in self._first}
        if begun.is_fresh:
            if not self._first:
                self._options.starting.check(map(TopicName.parse, plans))
            self._first |= self._planner.bounds(unknown, self._options.starting, end=False)
        else:  # a topic or partition that has come since: nothing of it has been read
            self._first |= {topic: plan.first for topic, plan in unknown.items()}
        return found | {topic: self._first[topic] for topic in fresh}

    def _check(self, topic: str, place: Place, plan: ReadingPlan | None) -> Place:
        """The same place, or the first that is left if messages have been deleted unread."""
        if plan is None:
            is_read = self._planner.reads(TopicName.parse(topic))
            self._lose(f"{topic} {'has been deleted' if is_read else NOT_READ}")
            return place
        if 0 <= place.index < plan.first.index:
            self._lose(offsets.lost(topic, f"offset {place.index}", plan))
            return plan.first
        if is_another(place.ledger_id, place.index, plan):
            self._lose(
                f"{topic} has been deleted and made again: it ends at offset {plan.end.index}, "
                f"and {place.index} have been read"
            )
            return plan.first
        return place

    def _check_end(self, topic: str, place: Place, plan: ReadingPlan | None) -> None:
        """Where a planned batch ends; of another topic of the same name it reads nothing."""
        if plan is not None and is_another(place.ledger_id, place.index, plan):
            self._lose(
                f"{topic} has been deleted and made again: it ends at offset {plan.end.index}, "
                f"and this batch was to be read up to {place.index}"
            )

    def _lose(self, what: str) -> None:
        lose(what, fails=self._options.fail_on_data_loss)

    def _ends(self, places: Places, plans: Plans) -> dict[str, Place]:
        """Where everything ends that may be read; never before the place."""
        ends = {}
        for topic, place in places.items():
            plan = plans.get(topic)
            end = place if plan is None else self._options.end_of(plan)
            if self._target is not None:
                end = min(end, self._target.get(topic, place), key=offsets.order)
            ends[topic] = max(end, place, key=offsets.order)
        return ends

    # -- limits -------------------------------------------------------------------------------

    def _admitted(self, places: Places, ends: Places, plans: Plans) -> dict[str, Place]:
        """The ends, as far as the limits of a batch allow: whole entries, at least one."""
        options = self._options
        rows = {
            topic: ends[topic].index - _index(place, plans[topic]) if topic in plans else 0
            for topic, place in places.items()
        }
        total = sum(rows.values())
        if 0 < total < options.min_rows_per_trigger and self._target is None:
            waited = time.monotonic() - self._began_at
            if waited < options.max_trigger_delay_seconds:
                return dict(places)
        admitted = total
        if options.max_rows_per_trigger:
            admitted = min(admitted, options.max_rows_per_trigger)
        if options.max_bytes_per_trigger:
            size = sum(self._bytes(topic, places, ends, plans) for topic in ends)
            if size > options.max_bytes_per_trigger:
                admitted = min(admitted, total * options.max_bytes_per_trigger // size)
        if admitted >= total:
            return dict(ends)
        return self._cut(places, ends, shares_of(rows, max(admitted, 1)))

    @staticmethod
    def _bytes(topic: str, places: Places, ends: Places, plans: Plans) -> int:
        if topic not in plans:
            return 0
        return sum(one.bytes for one in between(topic, plans[topic], places[topic], ends[topic]))

    def _cut(self, places: Places, ends: Places, shares: Mapping[str, int]) -> dict[str, Place]:
        """So many rows of each log, in whole entries."""
        asked = {
            topic: place.index + shares[topic]
            for topic, place in places.items()
            if shares[topic] and 0 <= place.index < ends[topic].index - shares[topic]
        }
        found = self._planner.service.positions(asked, {}) if asked else {}
        cut = {}
        for topic, place in places.items():
            if topic in found:
                cut[topic] = _boundary(found[topic], place)
            else:
                cut[topic] = ends[topic] if shares.get(topic) else place
        return cut


def _index(place: Place, plan: ReadingPlan) -> int:
    """The offset of a place; that of the first message if the place was given without."""
    return place.index if place.index >= 0 else plan.first.index


def _boundary(found: EntryPlace, start: Place) -> Place:
    """The beginning of an entry, or its end if nothing else is read."""
    if found.index > start.index:
        return Place(found.ledger_id, found.entry_id, found.index)
    return Place(found.ledger_id, found.entry_id + 1, found.next_index)
