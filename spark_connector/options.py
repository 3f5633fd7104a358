"""The options of `spark.read.format("magnetar")`. Pure.

`option_values.py` says how names and values are checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from magnetar.core.ledger.read.reading_plan import Place, ReadingPlan
from magnetar.spark_connector import security
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.offsets import EARLIEST, LATEST, BoundOption, Time
from magnetar.spark_connector.offsets import parse as parse_bound
from magnetar.spark_connector.option_values import FOREIGN, OptionNames, OptionValues, listed
from magnetar.spark_connector.reading.columns import COLUMNS
from magnetar.spark_connector.security import NOTHING_SAID, QuerySecurity
from magnetar.spark_connector.values import options as value_options
from magnetar.spark_connector.values.decoding import ValueType
from magnetar.spark_connector.values.options import AUTO, ValueOptions

ALIASES: Final = {
    "serviceurl": "service.url",
    "subscribe": "topics",
    "subscribepattern": "topicspattern",
    "maxoffsetspertrigger": "maxrowspertrigger",
    "minoffsetspertrigger": "minrowspertrigger",
    "startingtime": "startingtimestamp",
    "endingtime": "endingtimestamp",
    "kafka.isolation.level": "isolationlevel",
    **security.ALIASES,
}
"""Names that users of other connectors know, in lower case."""
_CURSOR: Final = 'a stream is followed on the server by "subscription"'
_TIME: Final = "of all topics together, in ms"
FOREIGN_READING: Final = {
    **FOREIGN,
    "assign": 'name partitions as "topics" does, such as "t-partition-0, t-partition-3"',
    "groupidprefix": _CURSOR,
    "kafka.group.id": _CURSOR,
    "predefinedsubscription": _CURSOR,
    "subscriptionprefix": _CURSOR,
    "startingoffsetsbytimestamp": f'"startingTimestamp" is it {_TIME}',
    "endingoffsetsbytimestamp": f'"endingTimestamp" is it {_TIME}',
    "maxtriggerdelay": '"maxTriggerDelayMs" is it in ms',
}
"""The same as `FOREIGN`, with options of sources."""
READ_COMMITTED: Final = "read_committed"
ISOLATION_LEVELS: Final = (READ_COMMITTED, "read_uncommitted")
POLL_MS: Final = 30_000
DEFAULT_NAMESPACE: Final = "public/default"
_SPARKS_OWN: Final = ("spark.", "path", "paths")
"""What Spark may add itself."""


class SourceOptions(Struct, frozen=True):
    """See the module's docstring."""

    service_urls: tuple[str, ...]
    """HTTP addresses of the server, to be asked in turn."""
    topics: tuple[str, ...]
    topics_pattern: str
    """`TENANT/NAMESPACE/REGULAR EXPRESSION`, if no topics are named."""
    starting: BoundOption
    ending: BoundOption = BoundOption(LATEST)
    columns: tuple[str, ...] = COLUMNS
    read_committed: bool = True
    fail_on_data_loss: bool = True
    max_bytes_per_split: int = 64 << 20
    min_partitions: int = 1
    max_partitions: int = 0
    """0 for twice as many as tasks run at once."""
    max_rows_per_trigger: int = 0
    max_bytes_per_trigger: int = 0
    min_rows_per_trigger: int = 0
    """0 for no such limit."""
    max_trigger_delay_seconds: float = 900.0
    """How long fewer rows than `min_rows_per_trigger` may wait for others."""
    timeout_seconds: float = 30.0
    from_gateway: bool = False
    """Whether entries are read from the server, not from bookies."""
    pushdown: bool = False
    """Whether the filters of a query decide what is read."""
    publish_time_slack_ms: int = -1
    """How far publish times may be from when messages were stored; -1 if they may be any."""
    subscription: str = ""
    """A cursor on the server that follows a stream, if any."""
    security: QuerySecurity = NOTHING_SAID
    values: ValueType = ValueType()
    """What the column `value` is; its type is known when Spark gives the schema."""

    def end_of(self, plan: ReadingPlan) -> Place:
        """Where a log ends for this query."""
        return plan.stable if self.read_committed else plan.end


def parse(given: Mapping[str, str], *, stream: bool = False) -> SourceOptions:
    """The options of a query; `OptionError` says what is wrong with them."""
    values = NAMES.given(given)
    for name in BATCH_ONLY if stream else STREAM_ONLY:
        if name in values:
            kind = "a batch query" if stream else "a stream"
            raise OptionError(f'"{KNOWN[name]}" is for {kind} only')
    urls = values.urls()
    topics, pattern = _topics(values)
    pushdown = values.flag("pushdown", default=False)
    slack = values.text("publishtimeslackms")
    if slack and not pushdown:
        raise OptionError('"publishTimeSlackMs" says something only with "pushdown" = "true"')
    of_values = value_options.parse(values)
    return SourceOptions(
        service_urls=urls,
        topics=topics,
        topics_pattern=pattern,
        starting=_bound(values, "starting", LATEST if stream else EARLIEST),
        ending=_bound(values, "ending", LATEST),
        columns=_columns(values.list("columns"), of_values),
        read_committed=values.choice("isolationlevel", ISOLATION_LEVELS) == READ_COMMITTED,
        fail_on_data_loss=values.flag("failondataloss", default=True),
        max_bytes_per_split=values.size("maxbytespersplit", "64m"),
        min_partitions=values.number("minpartitions", 1),
        max_partitions=values.number("maxpartitions", 0),
        max_rows_per_trigger=values.number("maxrowspertrigger", 0),
        max_bytes_per_trigger=values.size("maxbytespertrigger", "0"),
        min_rows_per_trigger=values.number("minrowspertrigger", 0),
        max_trigger_delay_seconds=values.number("maxtriggerdelayms", 900_000) / 1000,
        timeout_seconds=values.number("polltimeoutms", POLL_MS) / 1000,
        pushdown=pushdown,
        publish_time_slack_ms=values.number("publishtimeslackms", 0) if slack else -1,
        subscription=values.text("subscription"),
        security=security.parse(values, urls),
        values=ValueType(of_values),
        from_gateway=values.choice("readfrom", ("bookies", "gateway")) == "gateway",
    )


NAMES: Final = OptionNames(
    (
        "service.url", "topic", "topics", "topicsPattern", "startingOffsets", "endingOffsets",
        "startingTimestamp", "endingTimestamp", "columns", "isolationLevel", "failOnDataLoss",
        "maxBytesPerSplit", "minPartitions", "maxPartitions", "maxRowsPerTrigger",
        "maxBytesPerTrigger", "minRowsPerTrigger", "maxTriggerDelayMs", "pollTimeoutMs",
        "subscription", "readFrom", "pushdown", "publishTimeSlackMs", *value_options.NAMES,
        *security.NAMES,
    ),
    ALIASES,
    _SPARKS_OWN,
    FOREIGN_READING,
)  # fmt: skip
KNOWN: Final = NAMES.known
BATCH_ONLY: Final = ("endingoffsets", "endingtimestamp", "pushdown", "publishtimeslackms")
STREAM_ONLY: Final = (
    "maxrowspertrigger", "maxbytespertrigger", "minrowspertrigger", "maxtriggerdelayms",
    "subscription",
)  # fmt: skip


class TopicAddress(NamedTuple):
    """A topic, and whom to ask about it."""

    topic: str
    service_urls: tuple[str, ...]
    timeout_seconds: float
    security: QuerySecurity


class TableOptions(NamedTuple):
    """What the columns are."""

    names: tuple[str, ...]
    values: ValueOptions
    whose: TopicAddress | None = None
    """The topic that says what values are, if one does."""


def table_of(given: Mapping[str, str]) -> TableOptions:
    """What the schema depends on, after a check of all names."""
    values = NAMES.given(_of_created_table(given))
    of_values = value_options.parse(values)
    names = _columns(values.list("columns"), of_values)
    return TableOptions(names, of_values, _address(values, of_values))


def _of_created_table(given: Mapping[str, str]) -> Mapping[str, str]:
    """For `CREATE TABLE ... USING`, Spark 4.3 asks for the schema with all properties of the table:
    its provider, its owner and others, and its options with a prefix.
    """
    if "provider" not in given:
        return given
    prefix = "option."
    return {
        name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)
    }


def _address(values: OptionValues, of_values: ValueOptions) -> TopicAddress | None:
    if of_values.format != AUTO:
        return None
    topics, _ = _topics(values)
    if len(topics) != 1:
        raise OptionError(
            '"valueFormat" auto takes the schema of one topic: give "topic", and union the queries'
        )
    urls = values.urls()
    seconds = values.number("polltimeoutms", POLL_MS) / 1000
    return TopicAddress(topics[0], urls, seconds, security.parse(values, urls))


def _topics(values: OptionValues) -> tuple[tuple[str, ...], str]:
    """The names of topics, or a pattern."""
    given = [name for name in ("topic", "topics", "topicspattern") if values.text(name)]
    if len(given) != 1:
        raise OptionError('exactly one of "topic", "topics" and "topicsPattern" is to be given')
    text = values.text(given[0])
    if given[0] != "topicspattern":
        return listed(text), ""
    namespace, _, pattern = text.removeprefix("persistent://").rpartition("/")
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(f'"topicsPattern": {pattern} makes no sense: {error}') from error
    return (), f"{namespace or DEFAULT_NAMESPACE}/{pattern}"


def _bound(values: OptionValues, which: str, default: str) -> BoundOption:
    offsets_key, time_key = f"{which}offsets", f"{which}timestamp"
    if time_key in values and offsets_key in values:
        raise OptionError(f'"{KNOWN[offsets_key]}" and "{KNOWN[time_key]}" are both given')
    if time_key in values:
        return BoundOption(default, time=Time(values.number(time_key, 0)))
    return parse_bound(KNOWN[offsets_key], values.text(offsets_key, default), default)


def _columns(names: tuple[str, ...], of_values: ValueOptions) -> tuple[str, ...]:
    check_columns(names, of_values)
    return names or (*COLUMNS, *of_values.more_columns)


def check_columns(names: Sequence[str], of_values: ValueOptions) -> None:
    """Refuse names of columns that there are not."""
    if of_values.corrupt in COLUMNS:
        raise OptionError(f'"columnNameOfCorruptRecord" is a column: {of_values.corrupt}')
    every = (*COLUMNS, *of_values.more_columns)
    for name in names:
        if name not in every:
            raise OptionError(f'there is no column "{name}"; there are {", ".join(every)}')
    if of_values.corrupt in names and "value" not in names:
        raise OptionError(f'"{of_values.corrupt}" is what does not fit "value": read both')
