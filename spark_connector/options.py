"""The options of `spark.read.format("magnetar")`. Pure.

Names are in any case, as everywhere in Spark. An unknown one is an error that names the nearest: a
typing mistake would silently read something else. Required ones have no default, because Spark
drops the options of `CREATE TABLE ... USING` without a word.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from magnetar.core.ledger.read.reading_plan import Place, ReadingPlan
from magnetar.spark_connector.columns import COLUMNS
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.offsets import EARLIEST, LATEST, BoundOption, Time
from magnetar.spark_connector.offsets import parse as parse_bound

ALIASES: Final = {
    "serviceurl": "service.url",
    "subscribe": "topics",
    "subscribepattern": "topicspattern",
    "maxoffsetspertrigger": "maxrowspertrigger",
    "startingtime": "startingtimestamp",
    "endingtime": "endingtimestamp",
    "kafka.isolation.level": "isolationlevel",
}
"""Names that users of other connectors know, in lower case."""
READ_COMMITTED: Final = "read_committed"
ISOLATION_LEVELS: Final = (READ_COMMITTED, "read_uncommitted")
DEFAULT_NAMESPACE: Final = "public/default"
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
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
    subscription: str = ""
    """A cursor on the server that follows a stream, if any."""

    def end_of(self, plan: ReadingPlan) -> Place:
        """Where a log ends for this query."""
        return plan.stable if self.read_committed else plan.end


def parse(given: Mapping[str, str], *, stream: bool = False) -> SourceOptions:
    """The options of a query; `OptionError` says what is wrong with them."""
    found = _named(given)
    for name in BATCH_ONLY if stream else STREAM_ONLY:
        if name in found:
            kind = "a batch query" if stream else "a stream"
            raise OptionError(f'"{KNOWN[name]}" is for {kind} only')
    urls = _list(found.pop("service.url", ""))
    if not urls:
        raise OptionError('option "service.url" is missing: the HTTP address of the server')
    topics, pattern = _topics(found)
    return SourceOptions(
        service_urls=urls,
        topics=topics,
        topics_pattern=pattern,
        starting=_bound(found, "starting", LATEST if stream else EARLIEST),
        ending=_bound(found, "ending", LATEST),
        columns=_columns(found.pop("columns", "")),
        read_committed=_choice(found, "isolationlevel", ISOLATION_LEVELS) == READ_COMMITTED,
        fail_on_data_loss=_choice(found, "failondataloss", ("true", "false")) == "true",
        max_bytes_per_split=_bytes(found, "maxbytespersplit", "64m"),
        min_partitions=_number(found, "minpartitions", 1),
        max_partitions=_number(found, "maxpartitions", 0),
        max_rows_per_trigger=_number(found, "maxrowspertrigger", 0),
        max_bytes_per_trigger=_bytes(found, "maxbytespertrigger", "0"),
        min_rows_per_trigger=_number(found, "minrowspertrigger", 0),
        max_trigger_delay_seconds=_number(found, "maxtriggerdelayms", 900_000) / 1000,
        timeout_seconds=_number(found, "polltimeoutms", 30_000) / 1000,
        subscription=found.pop("subscription", ""),
        from_gateway=_choice(found, "readfrom", ("bookies", "gateway")) == "gateway",
    )


KNOWN: Final = {
    name.lower(): name
    for name in (
        "service.url", "topic", "topics", "topicsPattern", "startingOffsets", "endingOffsets",
        "startingTimestamp", "endingTimestamp", "columns", "isolationLevel", "failOnDataLoss",
        "maxBytesPerSplit", "minPartitions", "maxPartitions", "maxRowsPerTrigger",
        "maxBytesPerTrigger", "minRowsPerTrigger", "maxTriggerDelayMs", "pollTimeoutMs",
        "subscription", "readFrom",
    )
}  # fmt: skip
BATCH_ONLY: Final = ("endingoffsets", "endingtimestamp")
STREAM_ONLY: Final = (
    "maxrowspertrigger", "maxbytespertrigger", "minrowspertrigger", "maxtriggerdelayms",
    "subscription",
)  # fmt: skip


def columns_of(given: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that are read, after a check of all names."""
    return _columns(_named(given).get("columns", ""))


def _named(given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in given.items():
        key = name.lower()
        if key.startswith(_SPARKS_OWN):
            continue
        known = ALIASES.get(key, key)
        if known not in KNOWN:
            near = difflib.get_close_matches(known, [*KNOWN, *ALIASES], 1)
            hint = f'; did you mean "{KNOWN.get(near[0], near[0])}"?' if near else ""
            raise OptionError(f'there is no option "{name}"{hint}')
        if known in found:
            raise OptionError(f'option "{KNOWN[known]}" is given twice, under two names')
        found[known] = value
    return found


def _topics(found: dict[str, str]) -> tuple[tuple[str, ...], str]:
    """The names of topics, or a pattern."""
    given = [name for name in ("topic", "topics", "topicspattern") if found.get(name)]
    if len(given) != 1:
        raise OptionError('exactly one of "topic", "topics" and "topicsPattern" is to be given')
    text = found.pop(given[0])
    if given[0] != "topicspattern":
        return _list(text), ""
    namespace, _, pattern = text.removeprefix("persistent://").rpartition("/")
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(f'"topicsPattern": {pattern} makes no sense: {error}') from error
    return (), f"{namespace or DEFAULT_NAMESPACE}/{pattern}"


def _bound(found: dict[str, str], which: str, default: str) -> BoundOption:
    offsets_key, time_key = f"{which}offsets", f"{which}timestamp"
    if time_key in found and offsets_key in found:
        raise OptionError(f'"{KNOWN[offsets_key]}" and "{KNOWN[time_key]}" are both given')
    if time_key in found:
        return BoundOption(default, time=Time(_number(found, time_key, 0)))
    return parse_bound(KNOWN[offsets_key], found.pop(offsets_key, default), default)


def _columns(text: str) -> tuple[str, ...]:
    if not text:
        return COLUMNS
    names = _list(text)
    for name in names:
        if name not in COLUMNS:
            raise OptionError(f'there is no column "{name}"; there are {", ".join(COLUMNS)}')
    return names


def _list(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _choice(found: dict[str, str], name: str, values: tuple[str, ...]) -> str:
    value = found.pop(name, values[0]).lower()
    if value not in values:
        raise OptionError(f'"{KNOWN[name]}" is {" or ".join(values)}, not "{value}"')
    return value


def _number(found: dict[str, str], name: str, default: int) -> int:
    text = found.pop(name, str(default))
    if not text.isdecimal():
        raise OptionError(f'"{KNOWN[name]}" is a number, not "{text}"')
    return int(text)


def _bytes(found: dict[str, str], name: str, default: str) -> int:
    text = found.pop(name, default).lower().removesuffix("b")
    unit = _UNITS.get(text[-1:], 1)
    digits = text if unit == 1 else text[:-1]
    if not digits.isdecimal() or (default != "0" and not int(digits)):
        raise OptionError(f'"{KNOWN[name]}" is a size such as 64m, not "{text}"')
    return int(digits) * unit
