"""Settings reach the parts in the right units, and both agree on what is usual."""

import msgspec

from magnetar import part_settings
from magnetar.bookie.format.entries import ENTRY_BYTES_MAX
from magnetar.core.broker.broker import BrokerSettings
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.policy.persistence import Persistence
from magnetar.core.policy.values import BacklogQuota
from magnetar.core.ports.ledger_store import Quorums
from magnetar.part_settings import (
    broker_settings,
    kafka_options,
    pulsar_options,
    roll_limits,
)
from magnetar.settings import SETTINGS, Settings, load
from magnetar.settings.mqtt import Mqtt
from magnetar.wire.kafka.groups.options import GroupOptions
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.pulsar.replies import Address
from magnetar.wire.pulsar.session.options import PulsarOptions

USUAL = load().settings


def room() -> tuple[int, int]:
    """Of a disk."""
    return 2, 1


def test_defaults_are_the_parts_own() -> None:
    assert roll_limits(USUAL) == RollLimits()
    assert broker_settings(USUAL) == BrokerSettings()
    front = pulsar_options(USUAL, {})
    assert msgspec.structs.replace(front, server_version="Magnetar") == PulsarOptions()


def test_clients_are_told_where_to_connect() -> None:
    listeners = {"pulsar": "127.0.0.1:1", "pulsar_tls": "127.0.0.1:2", "http": "127.0.0.1:3"}
    front = pulsar_options(USUAL, listeners)
    assert front.address == Address("pulsar://127.0.0.1:1", "pulsar+ssl://127.0.0.1:2")
    assert front.through_service_url
    named = load("[listen]\nadvertised_host = 'mq.example.org'").settings
    front = pulsar_options(named, {"pulsar": "[::]:6650"})
    assert front.address == Address("pulsar://mq.example.org:6650", "")
    assert not front.through_service_url


def test_kafka_defaults_are_the_fronts_own() -> None:
    assert kafka_options(USUAL, room) == KafkaOptions(data_dir=USUAL.storage.data_dir, room=room)


def test_units() -> None:
    settings = load(
        "[ledgers]\nmax_size_mb = 2\nmin_rollover_minutes = 0.5\nmax_rollover_minutes = 1\n"
        "cache_size_mb = 3"
    ).settings
    roll = roll_limits(settings)
    assert (roll.bytes_max, roll.age_ms_min, roll.age_ms_max) == (2_097_152, 30_000, 60_000)
    assert broker_settings(settings).tail_cache_bytes_max == 3_145_728


def test_units_of_kafkas_groups() -> None:
    settings = load(
        "[kafka]\ngroup_initial_rebalance_delay_ms = 1500\noffsets_retention_minutes = 2\n"
        "offsets_retention_check_interval_ms = 7\ngroup_max_size = 3\n"
        "group_min_session_timeout_ms = 4\ngroup_max_session_timeout_ms = 5\n"
        "group_consumer_heartbeat_interval_ms = 1\ngroup_consumer_session_timeout_ms = 6"
    ).settings
    assert kafka_options(settings, room).groups == GroupOptions(
        size_max=3,
        first_delay_seconds=1.5,
        session_ms_min=4,
        session_ms_max=5,
        consumer_heartbeat_ms=1,
        consumer_session_ms=6,
        retention_ms=120_000,
        retention_check_ms=7,
    )


def test_quotas_that_limit() -> None:
    settings = load(
        "[broker]\nbacklog_quota_default_limit_bytes = 10240\n"
        "backlog_quota_default_limit_seconds = 60\n"
        "backlog_quota_default_retention_policy = 'producer_exception'"
    ).settings
    assert broker_settings(settings).defaults.backlog_quotas == {
        "destination_storage": BacklogQuota(10_240, -1, "producer_exception"),
        "message_age": BacklogQuota(-1, 60, "producer_exception"),
    }


def test_storage_says_what_its_quorums_are() -> None:
    found = broker_settings(USUAL, Quorums(3, 2, 1)).defaults.persistence
    assert found == Persistence(3, 2, 1, 0.0)


def test_partitions_by_default() -> None:
    settings = load(
        "[broker]\nallow_auto_topic_creation_type = 'partitioned'\ndefault_num_partitions = 3"
    ).settings
    assert broker_settings(settings).defaults.auto_topic_creation.partitions == 3


def test_the_largest_message_that_may_be_set_is_one_that_storage_takes() -> None:
    limit = SETTINGS["broker.max_message_size"].limits.le
    assert isinstance(limit, int)
    assert limit + 1024 < ENTRY_BYTES_MAX  # what storage and broker put around it is small


def test_namespaces_of_mqtt_divide_its_memory() -> None:
    mount_points = {"acme/devices": "1884", "other/devices": "1885"}
    alone, divided = (
        part_settings.mqtt_options(Settings(mqtt=Mqtt(mount_points=points)))
        for points in ({}, mount_points)
    )
    budgets = [name for name in alone.__struct_fields__ if name.endswith("_bytes_max")]
    budgets.remove("packet_bytes_max")
    for name in budgets:
        assert getattr(divided, name) <= getattr(alone, name) // 3 + 1024, name
    mounted = part_settings.mounted_options(Settings(), "acme/devices")
    assert (mounted.namespace, mounted.confined, mounted.acl) == ("acme/devices", True, None)
