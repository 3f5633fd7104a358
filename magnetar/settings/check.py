"""Checks of settings against each other, beyond the type of each. Pure."""

from collections.abc import Mapping

from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.core.kernel.names import NamespaceName
from magnetar.operator_error import OperatorError
from magnetar.settings.mount_points import TLS_KINDS, MountListener, mount_listeners
from magnetar.settings.registry import SETTINGS, Settings
from magnetar.settings.server import OPTIONAL_PORTS, PORT_MAX, PORTS, TLS_PORTS
from magnetar.wire.mqtt.mapping.rule_check import check_filter, target_of
from magnetar.wire.mqtt.mapping.rules import MappingRule, Rules

PARTS = ("magnetar", "core", "bookie", "wire", "hypercorn")
"""First components of logger names."""


def check(settings: Settings, origins: Mapping[str, str]) -> None:
    """Raise `OperatorError` for the first contradiction; `origins` has each setting's source."""
    _check_tls(settings, origins)
    _check_client_auth(settings, origins)
    _check_ports(settings, origins)
    _check_security(settings, origins)
    _check_certificates(settings, origins)
    _check_mqtt(settings, origins)
    _check_order(settings)
    _check_memory(settings)
    _check_advertised(settings, origins)
    for part in settings.log.levels:
        if part.partition(".")[0] not in PARTS:
            origin = origins["log.levels"]
            raise OperatorError(
                f"{origin}: log.levels: there is no part {part}; "
                f"parts begin with {', '.join(PARTS)}"
            )


def _check_tls(settings: Settings, origins: Mapping[str, str]) -> None:
    if settings.tls.certificate:
        return
    for path in ("tls.key", "tls.client_ca", *(f"listen.{port}" for port in TLS_PORTS)):
        section, _, key = path.partition(".")
        origin = origins.get(path, "")
        changed = getattr(getattr(settings, section), key) != SETTINGS[path].default
        # a file may hold the defaults, as `config show` prints them; a typed flag asks for TLS
        if changed or origin.startswith("--"):
            raise OperatorError(f"{origin}: {path} needs tls.certificate to be set")


def _check_client_auth(settings: Settings, origins: Mapping[str, str]) -> None:
    """Without a `client_ca` no client certificate could be verified."""
    if settings.tls.client_ca:
        return
    for door in ("pulsar", "kafka", "mqtt", "https"):
        path = f"tls.{door}_client_auth"
        if getattr(settings.tls, f"{door}_client_auth") in ("requested", "required"):
            raise OperatorError(f"{origins.get(path, '')}: {path} needs tls.client_ca to be set")


def _check_ports(settings: Settings, origins: Mapping[str, str]) -> None:
    if not settings.tls.certificate and all(getattr(settings.listen, port) < 0 for port in PORTS):
        raise OperatorError("every port of [listen] is closed")
    seen: dict[int, str] = {}
    for name in PORTS + OPTIONAL_PORTS + (TLS_PORTS if settings.tls.certificate else ()):
        path, port = f"listen.{name}", getattr(settings.listen, name)
        if port > 0 and port in seen:
            raise OperatorError(f"{path} and {seen[port]} are both {port}")
        seen[port] = path
    for listener in _mounts(settings, origins):
        path, port = f"mqtt.mount_points ({listener.namespace})", listener.port
        if port and port in seen:
            raise OperatorError(f"{path} and {seen[port]} are both {port}")
        seen[port] = path


NEED_PEOPLE = ("anonymous_role", "superusers", "allow_everyone_if_no_acl_found")
"""Settings of `security` that mean nothing if nobody authenticates."""


def _check_security(settings: Settings, origins: Mapping[str, str]) -> None:
    security = settings.security
    if not security.authenticates:
        for key in NEED_PEOPLE:
            if getattr(security, key):
                path = f"security.{key}"
                raise OperatorError(
                    f"{origins.get(path, '')}: {path} needs a way to authenticate: "
                    "security.token_secret_key, token_public_key, token_jwks, htpasswd, scram or "
                    "client_certificates"
                )
    if settings.mqtt.acl_file and not (security.authenticates and security.authorization):
        raise OperatorError(
            f"{origins.get('mqtt.acl_file', '')}: mqtt.acl_file has no effect while everybody may "
            "do everything: set up authentication (docs/security.md)"
        )


def _check_certificates(settings: Settings, origins: Mapping[str, str]) -> None:
    security = settings.security
    if security.client_certificates and not settings.tls.client_ca:
        origin = origins.get("security.client_certificates", "")
        raise OperatorError(
            f"{origin}: security.client_certificates needs tls.client_ca, which verifies them"
        )
    path = "security.certificate_mapping_rules"
    rules, origin = security.certificate_mapping_rules, origins.get(path, "")
    if rules == SETTINGS[path].default:
        return
    if security.certificate_name != "subject":
        raise OperatorError(f'{origin}: {path} needs security.certificate_name = "subject"')
    from magnetar.core.security.certificates.mapping_rules import MappingRules

    try:
        MappingRules(rules)
    except Invalid as error:
        raise OperatorError(f"{origin}: {path}: {error}") from None


def _mounts(settings: Settings, origins: Mapping[str, str]) -> list[MountListener]:
    try:
        listeners = mount_listeners(settings.mqtt.mount_points)
        if settings.mqtt.namespace in settings.mqtt.mount_points:
            raise ValueError(f"{settings.mqtt.namespace} is that of mqtt.namespace")
        if not settings.tls.certificate and any(one.kind in TLS_KINDS for one in listeners):
            raise ValueError("tls and wss need tls.certificate to be set")
    except ValueError as error:
        origin = origins.get("mqtt.mount_points", "")
        raise OperatorError(f"{origin}: mqtt.mount_points: {error}") from None
    return listeners


def _check_mqtt(settings: Settings, origins: Mapping[str, str]) -> None:
    mqtt = settings.mqtt
    try:
        namespace = NamespaceName.parse(mqtt.namespace)
    except InvalidName as error:
        origin = origins.get("mqtt.namespace", "")
        raise OperatorError(f"{origin}: mqtt.namespace: {error}") from None
    rules = Rules(namespace)
    for filter, topic in mqtt.rules.items():
        try:
            check_filter(filter)
            target_of(MappingRule(filter, topic), rules)
        except Invalid as error:
            origin = origins.get("mqtt.rules", "")
            raise OperatorError(f"{origin}: mqtt.rules: {filter!r}: {error}") from None
    for page in mqtt.websocket_origins:
        if page != "*" and not page.startswith(("http://", "https://")):
            origin = origins.get("mqtt.websocket_origins", "")
            raise OperatorError(
                f"{origin}: mqtt.websocket_origins: {page!r} does not begin with http:// or https://"
            )


def _check_advertised(settings: Settings, origins: Mapping[str, str]) -> None:
    origin = origins.get("kafka.advertised_listeners", "")
    for name, where in settings.kafka.advertised_listeners.items():
        setting = f"{origin}: kafka.advertised_listeners"
        if name not in ("kafka", "kafka_tls"):
            raise OperatorError(f"{setting}: there is no listener {name}, only kafka and kafka_tls")
        host, _, port = where.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            raise OperatorError(f"{setting}: {name} is {where!r}, not host:port")


def _check_order(settings: Settings) -> None:
    storage, ledgers = settings.storage, settings.ledgers
    if storage.disk_usage_low_water_mark > storage.disk_usage_threshold:
        raise OperatorError(
            "storage.disk_usage_low_water_mark is above storage.disk_usage_threshold"
        )
    if ledgers.min_rollover_minutes > ledgers.max_rollover_minutes:
        raise OperatorError("ledgers.min_rollover_minutes is above ledgers.max_rollover_minutes")


MESSAGES_IN_BUDGET = 4
"""How many of the largest messages must fit into the memory that all clients share."""


def _check_memory(settings: Settings) -> None:
    largest = max(settings.broker.max_message_size, settings.kafka.message_max_bytes)
    if largest * MESSAGES_IN_BUDGET > settings.limits.memory_budget_mb * 1024 * 1024:
        needed = -(-largest * MESSAGES_IN_BUDGET // (1024 * 1024))
        raise OperatorError(
            f"a message may have {largest} bytes: limits.memory_budget_mb must be {needed} or more"
        )
