"""The topic configs of Kafka, and their meaning here. Pure.

Every config in the table is checked when it is set, reported as it is set, and takes effect; those
that choose among alternatives of which there is only one here accept just that value.

Invariant: a stored value has passed its check; values are stored as text, as clients send them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.entry.kafka import compression
from magnetar.core.entry.kafka.compression import NONE
from magnetar.core.policy.policies import Effective, TopicPolicies
from magnetar.core.policy.values import Compaction, LedgerLimits, LogLimits, Retention
from magnetar.wire.kafka.errors import INVALID_CONFIG, KafkaRefusal

INT64_MAX: Final = 2**63 - 1
INT32_MAX: Final = 2**31 - 1
KEPT: Final = Retention(-1, -1)
"""Acknowledged messages stay; only the limits of the log delete them."""

RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
MAX_MESSAGE_BYTES: Final = "max.message.bytes"
CLEANUP_POLICY: Final = "cleanup.policy"
TIMESTAMP_TYPE: Final = "message.timestamp.type"
TIMESTAMP_BEFORE_MS: Final = "message.timestamp.before.max.ms"
TIMESTAMP_AFTER_MS: Final = "message.timestamp.after.max.ms"
MIN_INSYNC: Final = "min.insync.replicas"
SEGMENT_BYTES: Final = "segment.bytes"
SEGMENT_MS: Final = "segment.ms"
MIN_LAG_MS: Final = "min.compaction.lag.ms"
MAX_LAG_MS: Final = "max.compaction.lag.ms"
DIRTY_RATIO: Final = "min.cleanable.dirty.ratio"
DELETE_RETENTION_MS: Final = "delete.retention.ms"
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
COMPRESSION_TYPE: Final = "compression.type"
AS_IT_CAME: Final = "producer"
CODECS: Final[Mapping[str, int]] = {
    "uncompressed": NONE,
    **{codec.name: number for number, codec in compression.CODECS.items()},
}
"""The codecs by `compression.type`, as numbered in batches."""
BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""The largest batch: the limit of storage for an entry."""


class ConfigType(enum.IntEnum):
    """The type of a config, as numbered in DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Config(Struct, frozen=True):
    """One config of a topic."""

    name: str
    kind: ConfigType
    default: str
    check: Callable[[str], object]
    """Raises `ValueError` for an invalid value."""
    documentation: str


def within(low: int, high: int = INT64_MAX) -> Callable[[str], object]:
    """A check for integers within bounds."""

    def check(text: str) -> None:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"{number} is not from {low} to {high}")

    return check


def _one_of(*values: str) -> Callable[[str], object]:
    def check(text: str) -> None:
        if text not in values:
            raise ValueError(f"{text!r} is none of {', '.join(values)}")

    return check


_TIMES: Final = _one_of(CREATE_TIME, LOG_APPEND_TIME)


def _ratio(text: str) -> None:
    if not 0 <= float(text) <= 1:
        raise ValueError(f"{text} is not from 0 to 1")


def _policy(text: str) -> None:
    parts = text.split(",") if text else []
    if not set(parts) <= {"delete", "compact"} or len(set(parts)) != len(parts):
        raise ValueError(f"{text!r} is not delete, compact, both, or empty")


def _replicas(text: str) -> None:
    if text not in ("", "*") and not _REPLICAS.fullmatch(text):
        raise ValueError(f"{text!r} is not [partition]:[broker],... or *")


_REPLICAS: Final = re.compile(r"\d+:\d+(,\d+:\d+)*", re.ASCII)
_ANY: Final = within(0)
_INT: Final = within(0, INT32_MAX)
_NOTHING: Final = "Stored and reported; has no effect."

_ROWS: Final[tuple[tuple[str, ConfigType, str, Callable[[str], object], str], ...]] = (
    (
        CLEANUP_POLICY,
        ConfigType.LIST,
        "delete",
        _policy,
        "How old records go: by limits (delete), by newer keys (compact), or both.",
    ),
    (
        COMPRESSION_TYPE,
        ConfigType.STRING,
        AS_IT_CAME,
        _one_of(AS_IT_CAME, *CODECS),
        "The codec of stored batches; batches in another one are recompressed.",
    ),
    (
        RETENTION_MS,
        ConfigType.LONG,
        "604800000",
        within(-1),
        "Older records are deleted; -1 for never.",
    ),
    (
        RETENTION_BYTES,
        ConfigType.LONG,
        "-1",
        within(-1),
        "The oldest records of a longer log are deleted; -1 for no limit.",
    ),
    (
        MAX_MESSAGE_BYTES,
        ConfigType.INT,
        "1048588",
        within(0, BATCH_BYTES_MAX),
        "The largest batch accepted.",
    ),
    (
        TIMESTAMP_TYPE,
        ConfigType.STRING,
        CREATE_TIME,
        _TIMES,
        "Whether a record's time is the producer's or the broker's.",
    ),
    (
        TIMESTAMP_BEFORE_MS,
        ConfigType.LONG,
        str(INT64_MAX),
        _ANY,
        "How far a record's time may be behind the broker's.",
    ),
    (
        TIMESTAMP_AFTER_MS,
        ConfigType.LONG,
        "3600000",
        _ANY,
        "How far a record's time may be ahead of the broker's.",
    ),
    (
        MIN_INSYNC,
        ConfigType.INT,
        "1",
        within(1, INT32_MAX),
        "More than 1 refuses acks=all: there is one replica.",
    ),
    (
        SEGMENT_BYTES,
        ConfigType.INT,
        "1073741824",
        within(1024 * 1024, INT32_MAX),
        "The size at which the next ledger begins, after a second at least.",
    ),
    (
        SEGMENT_MS,
        ConfigType.LONG,
        "604800000",
        within(1),
        "The age at which the next ledger begins.",
    ),
    (MIN_LAG_MS, ConfigType.LONG, "0", _ANY, "Younger records are not compacted."),
    (
        MAX_LAG_MS,
        ConfigType.LONG,
        str(INT64_MAX),
        within(1),
        "Older records are compacted, at any dirty ratio.",
    ),
    (
        DIRTY_RATIO,
        ConfigType.DOUBLE,
        "0.5",
        _ratio,
        "The part of a log that must be new before it is compacted.",
    ),
    (
        DELETE_RETENTION_MS,
        ConfigType.LONG,
        "86400000",
        _ANY,
        "How long compaction retains tombstones.",
    ),
    (
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        "false",
        _one_of("true", "false"),
        _NOTHING,
    ),
    (
        "flush.messages",
        ConfigType.LONG,
        "1",
        within(1),
        "Everything is synced before it is acknowledged.",
    ),
    ("flush.ms", ConfigType.LONG, "0", _ANY, "Everything is synced before it is acknowledged."),
    ("file.delete.delay.ms", ConfigType.LONG, "60000", _ANY, _NOTHING),
    ("index.interval.bytes", ConfigType.INT, "4096", _INT, _NOTHING),
    ("segment.index.bytes", ConfigType.INT, "10485760", within(4, INT32_MAX), _NOTHING),
    ("segment.jitter.ms", ConfigType.LONG, "0", _ANY, _NOTHING),
    ("leader.replication.throttled.replicas", ConfigType.LIST, "", _replicas, _NOTHING),
    ("follower.replication.throttled.replicas", ConfigType.LIST, "", _replicas, _NOTHING),
    ("preallocate", ConfigType.BOOLEAN, "false", _one_of("true", "false"), _NOTHING),
)
TOPIC: Final[Mapping[str, Config]] = {row[0]: Config(*row) for row in _ROWS}
"""The configs by name."""


def check(
    name: str, value: str | None, table: Mapping[str, Config] = TOPIC, kind: str = "topic"
) -> str:
    """The checked value; raises `KafkaRefusal` for an unknown config or an invalid value."""
    config = table.get(name)
    if config is None:
        raise KafkaRefusal(INVALID_CONFIG, f"Unknown {kind} config name: {name}")
    if value is None:
        raise KafkaRefusal(INVALID_CONFIG, f"Null value not supported for {kind} configs: {name}")
    try:
        config.check(value)
    except ValueError as error:
        raise KafkaRefusal(
            INVALID_CONFIG, f"Invalid value {value} for configuration {name}: {error}"
        ) from error
    return value


def check_together(own: Mapping[str, str]) -> None:
    """Raise `KafkaRefusal` unless a topic may have all of these configs together."""
    low, high = (int(own.get(name, TOPIC[name].default)) for name in (MIN_LAG_MS, MAX_LAG_MS))
    if low > high:
        raise KafkaRefusal(
            INVALID_CONFIG,
            f"{MAX_LAG_MS} is not below {MIN_LAG_MS}: what is {high} ms old could not stay {low}",
        )


# -- what they mean -------------------------------------------------------------------------------


def applied(
    policies: TopicPolicies, configs: Mapping[str, str], defaults: Mapping[str, str]
) -> TopicPolicies:
    """The policies of a topic with exactly these configs."""

    def value(name: str) -> int:
        return int(configs.get(name) or defaults.get(name) or TOPIC[name].default)

    limits, compaction = LogLimits(value(RETENTION_MS), value(RETENTION_BYTES)), None
    cleanup = configs.get(CLEANUP_POLICY, "delete")
    if "delete" not in cleanup:
        limits = LogLimits()
    if "compact" in cleanup:
        ratio = configs.get(DIRTY_RATIO) or defaults.get(DIRTY_RATIO) or TOPIC[DIRTY_RATIO].default
        lag = value(MAX_LAG_MS)
        compaction = Compaction(
            dirty_ratio=float(ratio),
            min_lag_ms=value(MIN_LAG_MS),
            delete_retention_ms=value(DELETE_RETENTION_MS),
            max_lag_ms=lag if lag < INT64_MAX else -1,
        )
    rolls = [int(configs.get(name, -1)) for name in (SEGMENT_BYTES, SEGMENT_MS)]
    return replace(
        policies,
        configs=dict(configs),
        log_limits=limits,
        ledger_limits=LedgerLimits(*rolls) if max(rolls) >= 0 else None,
        compaction=compaction,
        retention=policies.retention or KEPT,
        max_message_size=value(MAX_MESSAGE_BYTES) if MAX_MESSAGE_BYTES in configs else None,
    )


def shown(effective: Effective, defaults: Mapping[str, str]) -> dict[str, str]:
    """All configs of a topic with their values; `defaults` are the server's own."""
    found = {name: config.default for name, config in TOPIC.items()}
    found |= defaults
    found |= effective.configs
    if effective.max_message_size:
        found[MAX_MESSAGE_BYTES] = str(effective.max_message_size)
    if effective.log_limits is None:
        found[RETENTION_MS], found[RETENTION_BYTES] = _of_retention(effective.retention)
    return found


def _of_retention(retention: Retention) -> tuple[str, str]:
    """`retention.bytes` and `retention.ms` of a retention that Pulsar's tools have set."""
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    return (
        str(minutes * 60_000 if minutes > 0 else minutes),
        str(megabytes * 1024 * 1024 if megabytes > 0 else megabytes),
    )


class ProduceRules(Struct, frozen=True):
    """The configs of a topic that apply to each batch."""

    bytes_max: int
    append_time: bool
    before_ms: int
    after_ms: int
    insync: int
    keyed: bool
    """Whether every record needs a key, because the topic is compacted."""
    limited: bool
    """Whether records are deleted by limits, or by DeleteRecords."""
    codec: int | None
    """The codec of `compression.type`; None for the producer's."""
    plain: bool
    """Whether valid batches within the time limits are stored unchanged."""


def rules(
    effective: Effective, defaults: Mapping[str, str], bytes_max: int = BATCH_BYTES_MAX
) -> ProduceRules:
    """The rules for these policies; no topic allows batches of more than `bytes_max`."""
    found = shown(effective, defaults)
    append_time = found[TIMESTAMP_TYPE] == LOG_APPEND_TIME
    insync = int(found[MIN_INSYNC])
    keyed = "compact" in found[CLEANUP_POLICY]
    codec = CODECS.get(found[COMPRESSION_TYPE])
    return ProduceRules(
        bytes_max=min(int(found[MAX_MESSAGE_BYTES]), bytes_max),
        append_time=append_time,
        before_ms=int(found[TIMESTAMP_BEFORE_MS]),
        after_ms=int(found[TIMESTAMP_AFTER_MS]),
        insync=insync,
        keyed=keyed,
        limited="delete" in found[CLEANUP_POLICY],
        codec=codec,
        plain=not append_time and insync <= 1 and not keyed and codec is None,
    )
