"""Plans queries: which entries their tasks read, and all that they need for it.

It runs in the driver, and is the only part that asks the server.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql.datasource import Filter

from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.ledger.read.reading_plan import Place, ReadingPlan
from magnetar.core.ledger.read.transaction_index import Aborted
from magnetar.spark_connector import offsets
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.offsets import BoundOption, Time
from magnetar.spark_connector.options import SourceOptions
from magnetar.spark_connector.planning.pruning import UNPRUNED, Pruning
from magnetar.spark_connector.planning.ranges import EntryRange, aborted_of, between, shared
from magnetar.spark_connector.reading.range_reader import Task
from magnetar.spark_connector.service import LedgerFacts, ReadingService

log = logging.getLogger(__name__)
Plans = Mapping[str, ReadingPlan]
Places = Mapping[str, Place]


class Planner:
    """Plans the batches of one query."""

    def __init__(self, options: SourceOptions, pruning: Pruning = UNPRUNED) -> None:
        self.options = options
        self.pruning = pruning
        self.service = ReadingService(
            options.service_urls, options.timeout_seconds, options.security
        )
        self._absent: frozenset[str] = frozenset()
        """Topics of which it has been said that they are not there."""

    def plans(self, known: Iterable[str] = (), *, lenient: bool = False) -> Plans:
        """Each topic, or partition, as it is now. One that was named and is not there is a mistake,
        unless it was `known` before, or any of them may be gone (`lenient`): that is a warning.
        """
        names = self.options.topics or self._matching()
        if not names:
            return {}
        found = self.service.topics(names)
        before = {TopicName.parse(topic).base.full for topic in known} | set(known)
        never = [topic for topic in found.missing if topic not in before]
        if never and self.options.topics and not lenient:
            raise OptionError(f"there is no topic {', '.join(never)}")
        if new := [topic for topic in never if topic not in self._absent]:
            log.warning("there is no topic %s: it is read once there is", ", ".join(new))
        self._absent = frozenset(never)
        return found.topics

    def _matching(self) -> Sequence[str]:
        """The topics of a namespace that match the pattern."""
        namespace, pattern = self._pattern()
        wanted = re.compile(pattern)
        topics = map(TopicName.parse, self.service.topics_of(str(namespace)))
        return [one.full for one in topics if wanted.fullmatch(one.base.local)]

    def _pattern(self) -> tuple[NamespaceName, str]:
        namespace, _, pattern = self.options.topics_pattern.rpartition("/")
        return NamespaceName.parse(namespace), pattern

    def reads(self, log: TopicName) -> bool:
        """Whether the query reads a topic or partition, if there is one."""
        if self.options.topics:
            names = {TopicName.parse(topic).full for topic in self.options.topics}
            return not names.isdisjoint((log.full, log.base.full))
        namespace, pattern = self._pattern()
        return log.namespace == namespace and bool(re.fullmatch(pattern, log.base.local))

    def bounds(self, plans: Plans, option: BoundOption, *, end: bool) -> Places:
        """Where to begin, or to end, in each log."""
        found: dict[str, Place] = {}
        bare: dict[str, Place] = {}
        asked: dict[str, int] = {}
        times: dict[str, int] = {}
        options = self.options
        for topic, plan in plans.items():
            place = offsets.known_place(
                option.of(TopicName.parse(topic)),
                topic,
                plan,
                bound=options.end_of(plan) if end else plan.end,
                latest=options.end_of(plan),
                fails=options.fail_on_data_loss,
            )
            if isinstance(place, Place):
                # limits and filters count from the offset where something begins
                no_index = place.index == offsets.NO_INDEX and not end
                (bare if no_index else found)[topic] = place
            elif isinstance(place, Time):
                times[topic] = place.ms
            else:
                asked[topic] = place
        if bare:
            found |= self.service.indexed(bare)
        if asked or times:
            as_bound = offsets.as_end if end else offsets.as_start
            for topic, entry in self.service.positions(asked, times).items():
                found[topic] = as_bound(entry, asked.get(topic, entry.index))
                if end:
                    most = options.end_of(plans[topic])
                    found[topic] = min(found[topic], most, key=offsets.order)
        return found

    def narrowed(self, plans: Plans, starts: Places, ends: Places) -> tuple[Places, Places]:
        """The bounds without what has other offsets than the filters want."""
        wanted = self.pruning.span("offset")
        starts, ends = dict(starts), dict(ends)
        lows, highs = {}, {}
        for topic, plan in plans.items():
            if wanted.least >= plan.end.index or wanted.most < plan.first.index:
                ends[topic] = starts[topic]
            else:
                if wanted.least > plan.first.index:
                    lows[topic] = wanted.least
                if wanted.most + 1 < plan.end.index:
                    highs[topic] = wanted.most + 1
        if lows:
            for topic, entry in self.service.positions(lows, {}).items():
                least = offsets.as_start(entry, lows[topic])
                starts[topic] = max(starts[topic], least, key=offsets.order)
        if highs:
            for topic, entry in self.service.positions(highs, {}).items():
                most = offsets.as_end(entry, highs[topic])
                ends[topic] = min(ends[topic], most, key=offsets.order)
        return starts, ends

    def tasks(self, plans: Plans, starts: Places, ends: Places, parallelism: int) -> list[Task]:
        """The tasks of a batch; `parallelism` is how many run at once."""
        ranges: list[EntryRange] = []
        for topic, end in sorted(ends.items()):
            if (plan := plans.get(topic)) is not None:
                found = between(topic, plan, starts[topic], end, self.pruning.admits_ledger)
                ranges += self.pruning.clipped(found)
        options = self.options
        most = options.max_partitions or 2 * parallelism
        shares = shared(ranges, options.max_bytes_per_split, options.min_partitions, most)
        wanted: dict[str, set[int]] = {}
        if not options.from_gateway:
            for one in ranges:
                wanted.setdefault(one.log, set()).add(one.stored_in)
        facts = self.service.ledgers(wanted)
        return [self._task(share.ranges, plans, facts) for share in shares]

    def _task(self, ranges: Sequence[EntryRange], plans: Plans, facts: LedgerFacts) -> Task:
        """A share with what is needed for it."""
        options = self.options
        wanted = {one.stored_in for one in ranges}
        aborted: dict[str, list[Aborted]] = {}
        if options.read_committed:
            # the ranges of a log have the same offsets, so one of them will do
            for log, one in {each.log: each for each in ranges}.items():
                if found := aborted_of(plans[log], one):
                    aborted[log] = found
        return Task(
            tuple(ranges),
            {each: facts.ledgers[each] for each in wanted if each in facts.ledgers},
            facts.bookies,
            {each: facts.tickets[each] for each in wanted if each in facts.tickets},
            aborted,
            options.columns,
            options.fail_on_data_loss,
            options.timeout_seconds,
            options.service_urls,
            options.from_gateway,
            options.security,
            options.values,
        )


def batch(options: SourceOptions, parallelism: int, filters: Sequence[Filter] = ()) -> list[Task]:
    """The tasks of a batch query."""
    planner = Planner(options, Pruning(tuple(filters), options.publish_time_slack_ms))
    plans = planner.plans()
    for option in (options.starting, options.ending):
        option.check(map(TopicName.parse, plans))
    plans = {log: plan for log, plan in plans.items() if planner.pruning.admits_log(log)}
    starts = planner.bounds(plans, options.starting, end=False)
    ends = planner.bounds(plans, options.ending, end=True)
    starts, ends = planner.narrowed(plans, starts, ends)
    return planner.tasks(plans, starts, ends, parallelism)
