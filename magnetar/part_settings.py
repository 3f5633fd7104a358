"""Each part's share of the settings, in the part's own terms and units.

Parts do not know `magnetar.settings`: they take small Structs that they define themselves.
Only this module converts settings into them, and `shared_settings.py` for the parts that a bookie
has too. Pure.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from magnetar import __version__
from magnetar.core.broker.broker import BrokerSettings
from magnetar.core.dispatch.selectors import Division
from magnetar.core.kernel.throttle import RateLimit
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.persistence import Persistence
from magnetar.core.policy.policies import Effective
from magnetar.core.ports.client_administration import ClientAdministration
from magnetar.core.ports.ledger_places import LedgerPlaces
from magnetar.core.ports.ledger_store import Quorums
from magnetar.settings import Settings
from magnetar.settings.broker import Broker
from magnetar.settings.security import Security
from magnetar.settings.toml import shown
from magnetar.shared_settings import HELD_MESSAGES, HELD_PART, HTTP_PART, LOADED_PART
from magnetar.wire.http.guard import HostNames
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.kafka.groups.offsets import committed_offset
from magnetar.wire.kafka.groups.options import GroupOptions
from magnetar.wire.kafka.options import KafkaOptions
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.options import MqttOptions
from magnetar.wire.mqtt.rights.acl_file import AclFile
from magnetar.wire.pulsar import metadata
from magnetar.wire.pulsar.replies import Address
from magnetar.wire.pulsar.session.options import PulsarOptions
from magnetar.wire.pulsar.wire import WireOptions

MEBIBYTE: Final = 1024 * 1024
MINUTE_MS: Final = 60_000


MQTT_NAMES_PART: Final = 4
"""The topics of MQTT's retained messages may take so many times the memory of the messages."""


def pulsar_options(settings: Settings, listeners: Mapping[str, str]) -> PulsarOptions:
    """The Pulsar front's options; `listeners` maps each open door to its `host:port`."""
    return PulsarOptions(
        server_version=f"Magnetar {__version__}",
        address=Address(
            url=_advertised("pulsar://", settings, listeners.get("pulsar")),
            url_tls=_advertised("pulsar+ssl://", settings, listeners.get("pulsar_tls")),
        ),
        through_service_url=not settings.listen.advertised_host,
        wire=WireOptions(message_bytes_max=settings.broker.max_message_size),
        pending_messages_max=settings.limits.pending_messages_per_connection,
        lookups_max=settings.limits.max_concurrent_lookup_request,
        expose_broker_metadata=settings.broker.exposing_broker_entry_metadata_to_client_enabled,
        transactions=settings.broker.transaction_coordinator_enabled,
        held_bytes_max=max(
            settings.limits.memory_budget_mb * MEBIBYTE // HELD_PART,
            HELD_MESSAGES * settings.broker.max_message_size,
        ),
        batch_index_acks=settings.broker.acknowledgment_at_batch_index_level_enabled,
        proxy_roles=frozenset(settings.security.proxy_roles),
        authenticate_original_auth_data=settings.security.authenticate_original_auth_data,
    )


def kafka_options(settings: Settings, room: Callable[[], tuple[int, int]]) -> KafkaOptions:
    kafka = settings.kafka
    return KafkaOptions(
        host=settings.listen.advertised_host,
        advertised=kafka.advertised_listeners,
        node_id=kafka.broker_id,
        partitions=kafka.num_partitions,
        batch_bytes_max=kafka.message_max_bytes,
        message_bytes_max=settings.broker.max_message_size,
        retention_ms=kafka.log_retention_ms,
        transaction_ms_max=kafka.transaction_max_timeout_ms,
        transactional_id_ms_max=kafka.transactional_id_expiration_ms,
        groups=GroupOptions(
            size_max=kafka.group_max_size,
            first_delay_seconds=kafka.group_initial_rebalance_delay_ms / 1000,
            session_ms_min=kafka.group_min_session_timeout_ms,
            session_ms_max=kafka.group_max_session_timeout_ms,
            consumer_heartbeat_ms=kafka.group_consumer_heartbeat_interval_ms,
            consumer_session_ms=kafka.group_consumer_session_timeout_ms,
            retention_ms=kafka.offsets_retention_minutes * MINUTE_MS,
            retention_check_ms=kafka.offsets_retention_check_interval_ms,
        ),
        data_dir=settings.storage.data_dir,
        room=room,
    )


def mqtt_options(settings: Settings, acl: AclFile | None = None) -> MqttOptions:
    """The options of the listeners that everybody uses; mount points have as much memory."""
    mqtt = settings.mqtt
    namespaces = 1 + len(mqtt.mount_points)
    part = MEBIBYTE // namespaces
    standard = MqttOptions()
    return MqttOptions(
        namespace=mqtt.namespace,
        acl=acl,
        rules=tuple(MappingRule(filter, topic) for filter, topic in mqtt.rules.items()),
        packet_bytes_max=settings.broker.max_message_size,
        receive_maximum=mqtt.receive_maximum,
        inflight_max=mqtt.max_inflight_messages,
        topic_alias_maximum=mqtt.topic_alias_maximum,
        keep_alive_seconds_max=mqtt.max_keepalive_seconds,
        session_expiry_seconds_max=mqtt.session_expiry_seconds,
        subscriptions_max=mqtt.max_subscriptions_per_session,
        subscriptions_size_max=mqtt.max_subscription_kb_per_session * 1024,
        pending_messages_max=settings.limits.pending_messages_per_connection,
        sys_interval_seconds=mqtt.sys_interval,
        version=f"Magnetar version {__version__}",
        sleeping_bytes_max=mqtt.session_memory_mb * part,
        sessions_bytes_max=mqtt.session_storage_mb * part,
        subscriptions_bytes_max=mqtt.subscription_memory_mb * part,
        retained_bytes_max=mqtt.retained_memory_mb * part,
        aliases_bytes_max=standard.aliases_bytes_max // namespaces,
        unreleased_bytes_max=standard.unreleased_bytes_max // namespaces,
        windows_bytes_max=standard.windows_bytes_max // namespaces,
        wills_bytes_max=standard.wills_bytes_max // namespaces,
        retained_names_bytes_max=MQTT_NAMES_PART * mqtt.retained_memory_mb * part,
    )


def mounted_options(settings: Settings, namespace: str) -> MqttOptions:
    """Those of the listeners of a mount point. Rules that name other namespaces do not count, nor
    does the file of topics: its rules are about those of `mqtt.namespace`.
    """
    options = mqtt_options(settings)
    rules = tuple(rule for rule in options.rules if "/" not in rule.topic)
    return msgspec.structs.replace(options, namespace=namespace, rules=rules, confined=True)


def _open_paths(security: Security) -> frozenset[str]:
    """Paths for everybody, of those that a setting can close."""
    asked = {"/metrics": security.open_metrics, "/healthz": security.open_health}
    return frozenset(path for path, is_open in asked.items() if is_open)


def http_options(
    settings: Settings,
    listeners: Mapping[str, str],
    hosts: HostNames,
    readiness: Callable[[], str | None],
    mqtt_clients: Mapping[str, ClientAdministration],
    ledger_places: LedgerPlaces,
) -> HttpOptions:
    """The HTTP front's options; `hosts` are the server's names, `readiness` returns why it cannot
    accept writes now, or None, and `mqtt_clients` has the administration of each namespace.
    """
    return HttpOptions(
        version=f"Magnetar {__version__}",
        broker_url=_advertised("pulsar://", settings, listeners.get("pulsar")),
        broker_url_tls=_advertised("pulsar+ssl://", settings, listeners.get("pulsar_tls")),
        kafka_address=_advertised("", settings, listeners.get("kafka")),
        kafka_address_tls=_advertised("", settings, listeners.get("kafka_tls")),
        mqtt_address=_advertised("", settings, listeners.get("mqtt")),
        mqtt_address_tls=_advertised("", settings, listeners.get("mqtt_tls")),
        mqtt_ws_url=_advertised("ws://", settings, listeners.get("mqtt_ws")),
        mqtt_ws_url_tls=_advertised("wss://", settings, listeners.get("mqtt_wss")),
        http_url=_advertised("http://", settings, listeners.get("http")),
        http_url_tls=_advertised("https://", settings, listeners.get("https")),
        hosts=hosts,
        connections_max=settings.limits.http_connections,
        body_bytes_max=settings.limits.http_body_bytes,
        memory_bytes_max=settings.limits.memory_budget_mb * MEBIBYTE // HTTP_PART,
        message_bytes_max=settings.broker.max_message_size,
        open_paths=_open_paths(settings.security),
        proxy_roles=frozenset(settings.security.proxy_roles),
        configuration={
            f"{section}.{key}": str(shown(value))
            for section, values in msgspec.to_builtins(settings).items()
            for key, value in values.items()
        },
        readiness=readiness,
        read_entry=metadata.read,
        committed_offset=committed_offset,
        mqtt_clients=mqtt_clients,
        ledger_places=ledger_places,
    )


def advertised(settings: Settings, address: str | None) -> str:
    """`host:port` for clients; empty for a door that is closed."""
    return _advertised("", settings, address)


def _advertised(scheme: str, settings: Settings, address: str | None) -> str:
    """The address for clients, with the advertised host if there is one."""
    if address is None:
        return ""
    host, _, port = address.rpartition(":")
    return f"{scheme}{settings.listen.advertised_host or host}:{port}"


def roll_limits(settings: Settings) -> RollLimits:
    ledgers = settings.ledgers
    return RollLimits(
        entries_max=ledgers.max_entries,
        bytes_max=ledgers.max_size_mb * MEBIBYTE,
        age_ms_min=round(ledgers.min_rollover_minutes * MINUTE_MS),
        age_ms_max=round(ledgers.max_rollover_minutes * MINUTE_MS),
    )


def broker_settings(settings: Settings, quorums: Quorums | None = None) -> BrokerSettings:
    return BrokerSettings(
        cluster=settings.broker.cluster_name,
        defaults=broker_defaults(settings.broker, quorums),
        roll=roll_limits(settings),
        publish_rate=RateLimit(
            settings.broker.broker_publisher_throttling_max_message_rate,
            settings.broker.broker_publisher_throttling_max_byte_rate,
        ),
        division=Division(
            settings.broker.subscription_key_shared_use_consistent_hashing,
            settings.broker.subscription_key_shared_consistent_hashing_replica_points,
        ),
        tail_cache_bytes_max=settings.ledgers.cache_size_mb * MEBIBYTE,
        loaded_bytes_max=settings.limits.memory_budget_mb * MEBIBYTE // LOADED_PART,
        cursor_flush_seconds=settings.ledgers.cursor_flush_seconds,
        skips_lost=settings.ledgers.auto_skip_non_recoverable_data,
        schema_bytes_max=settings.broker.schema_bytes_max,
        housekeeping_seconds=settings.broker.housekeeping_interval_seconds,
    )


def broker_defaults(broker: Broker, quorums: Quorums | None) -> Effective:
    """Defaults of the policies: each policy names the settings that determine its default. Storage
    says of itself what its quorums are.
    """
    policies = levels_of(Effective).effective
    configured = {one.name: one.configured(broker) for one in policies if one.settings}
    persistence = None if quorums is None else Persistence(*quorums, 0.0)
    return Effective(**configured, persistence=persistence)
