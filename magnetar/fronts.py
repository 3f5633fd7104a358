"""The list of all protocols that this server speaks, one entry each.

An entry names the front's doors, with the settings that they depend on, and makes the front from
the parts of the server. `part_settings.py` derives its options from the settings;
`core/link/front.py` defines a front.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from magnetar import part_settings
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.spare_files import Lend
from magnetar.core.ledger.read.tickets import TicketOffice
from magnetar.core.link.foreign_protocols import NO_HTTP, HttpAddress
from magnetar.core.link.front import Door, Front
from magnetar.core.link.loop import Link
from magnetar.core.ports.client_administration import ClientAdministration
from magnetar.core.transactions.sinks import Sinks
from magnetar.core.transactions.topic_transactions import TopicTransactions
from magnetar.doors.origins import Origins
from magnetar.doors.sockets import DoorPlan, address, host_names
from magnetar.measures import mqtt, quotas
from magnetar.measures import parts as measures
from magnetar.operator_error import OperatorError
from magnetar.settings import Settings
from magnetar.settings.mount_points import TLS_KINDS, MountListener, mount_listeners
from magnetar.settings.server import ClientAuth, Tls
from magnetar.storage.opened import OpenedStorage
from magnetar.wire.http.front import HttpFront
from magnetar.wire.http.guard import HostNames
from magnetar.wire.http.metrics.exposition import Family
from magnetar.wire.http.options import PassOn
from magnetar.wire.kafka.front import KafkaFront
from magnetar.wire.mqtt.administration import administration_of
from magnetar.wire.mqtt.front import MountPoint, MqttFront
from magnetar.wire.mqtt.rights.acl_file import AclFile
from magnetar.wire.pulsar.session.front import PulsarFront
from magnetar.wire.pulsar.session.websockets import LAYER, WebSockets

if TYPE_CHECKING:
    import socket

    from magnetar.bookie.requests.authentication import BookieAccess
    from magnetar.core.link.layers.tls import TlsParts


class Parts(Struct, frozen=True):
    """The parts of a server that fronts are made from."""

    settings: Settings
    doors: Mapping[str, Door]
    """All open doors, by name."""
    link: Link
    storage: OpenedStorage
    broker: Broker
    lend: Lend
    """Spare file descriptors for late imports."""
    mqtt_acl: AclFile | None = None
    """Rules for MQTT topics."""
    bookie_access: BookieAccess | None = None
    """What readers of the own bookie are asked for."""
    tickets: TicketOffice | None = None
    """Where readers of ledgers get their tickets; None if bookies ask for none."""
    measured: list[Callable[[], list[Family]]] = []
    """What fronts add to the metrics."""
    mqtt_clients: dict[str, ClientAdministration] = {}
    """The administration of MQTT's clients, by namespace."""
    pulsar: list[PulsarFront] = []
    """The front that serves WebSockets, if there is one."""
    sinks: list[Sinks] = []
    """The writers in batches, of the front that has them."""
    transactions: list[TopicTransactions] = []
    """Those of Pulsar's clients, of the front that has them."""

    def addresses(self) -> dict[str, str]:
        """`host:port` of each door."""
        return {name: address(door.socket) for name, door in self.doors.items()}


MQTT_WS: Final = "mqtt_ws"
MQTT_WSS: Final = "mqtt_wss"
BOOKIE: Final = "bookie"
"""Of the door for those who read ledgers themselves; closed unless it is asked for."""


class FrontPlan(NamedTuple):
    """One front: its doors, and a function that makes it with those of them that are open."""

    doors: tuple[DoorPlan, ...]
    make: Callable[[Parts, Sequence[Door]], Front]
    has_transactions: bool = False
    """It is made without open doors, too: transactions in topics end, whoever may connect."""


def _pulsar(parts: Parts, doors: Sequence[Door]) -> Front:
    options = part_settings.pulsar_options(parts.settings, parts.addresses())
    front = PulsarFront(parts.broker, options, doors)
    if doors:
        parts.pulsar.append(front)
    if front.services.transactions is not None:
        parts.transactions.append(front.services.transactions)
    return front


def _kafka(parts: Parts, doors: Sequence[Door]) -> Front:
    options = part_settings.kafka_options(parts.settings, partial(_room, parts.settings))
    front = KafkaFront(parts.broker, options, doors, parts.lend)
    parts.sinks.append(front.services.sinks)
    parts.measured.append(partial(quotas.families, front.services.quotas))
    return front


def _mqtt(parts: Parts, doors: Sequence[Door]) -> Front:
    settings = parts.settings
    hosts = host_names(settings.listen, doors[0].socket)
    origins = Origins(hosts, settings.mqtt.websocket_origins)
    over_websocket = [door for door in doors if door.name in (MQTT_WS, MQTT_WSS)]
    plain = [door for door in doors if door not in over_websocket]
    mount_points = [
        MountPoint(
            part_settings.mounted_options(settings, namespace),
            _mounted(parts, namespace, ("mqtt", "mqtt_tls")),
            _mounted(parts, namespace, (MQTT_WS, MQTT_WSS)),
        )
        for namespace in settings.mqtt.mount_points
    ]
    options = part_settings.mqtt_options(settings, parts.mqtt_acl)
    mount_points.insert(0, MountPoint(options, plain, over_websocket))
    front = MqttFront(parts.broker, mount_points, origins.permit)
    parts.measured.append(lambda: mqtt.families(front.services_by_namespace))
    for namespace, services in front.services_by_namespace.items():
        parts.mqtt_clients[namespace] = administration_of(services)
    return front


def _mounted(parts: Parts, namespace: str, kinds: Sequence[str]) -> list[Door]:
    """The doors of these kinds that a namespace has for itself."""
    names = [f"{kind}@{namespace}" for kind in kinds]
    return [parts.doors[name] for name in names if name in parts.doors]


def _room(settings: Settings) -> tuple[int, int]:
    """Bytes of the data's disk: in total, and free."""
    try:
        usage = shutil.disk_usage(settings.storage.data_dir)
    except OSError:  # tools get "unknown"
        return -1, -1
    return usage.total, usage.free


def _http(parts: Parts, doors: Sequence[Door]) -> Front:
    settings, ledgers = parts.settings, parts.storage.ledgers
    hosts = host_names(settings.listen, doors[0].socket)
    options = part_settings.http_options(
        settings,
        parts.addresses(),
        hosts,
        lambda: None if ledgers.writable() else ledgers.refusal(),
        parts.mqtt_clients,
        parts.storage.places(part_settings.advertised(settings, parts.addresses().get(BOOKIE))),
    )
    sinks = next(iter(parts.sinks), None)
    options = replace(
        options,
        bookies=parts.storage.bookies,
        sinks=sinks,
        transactions=next(iter(parts.transactions), None),
        tickets=parts.tickets,
        pass_on=_websockets(parts, hosts),
        late_modules=(LAYER,),
    )
    return HttpFront(parts.broker, options, partial(_metrics, parts), doors, parts.lend)


def _websockets(parts: Parts, hosts: HostNames) -> PassOn | None:
    """Passes connections on from HTTP to the Pulsar front, over the link."""
    settings = parts.settings
    if not parts.pulsar or not settings.broker.web_socket_service_enabled:
        return None
    origins = Origins(hosts, settings.listen.http_websocket_origins)
    websockets = WebSockets(parts.pulsar[0], origins.permit)

    def pass_on(sock: socket.socket, tls: TlsParts | None, begin: bytes) -> None:
        parts.link.adopt("websocket", sock, partial(websockets.connect, tls), begin)

    return pass_on


def _bookie(parts: Parts, doors: Sequence[Door]) -> Front:
    if parts.storage.lend is None:
        raise OperatorError(
            "--bookie-port is for a server with a bookie of its own: here readers ask the cluster's"
        )
    return parts.storage.lend(doors, parts.bookie_access)


def _metrics(parts: Parts) -> list[Family]:
    found = measures.families(parts.link.statistics()) + parts.storage.measured()
    for families in parts.measured:
        found += families()
    return found


FRONTS: Final = (
    FrontPlan(
        (
            DoorPlan("pulsar", lambda listen: listen.pulsar_port),
            DoorPlan(
                "pulsar_tls",
                lambda listen: listen.pulsar_tls_port,
                lambda tls: tls.pulsar_client_auth,
            ),
        ),
        _pulsar,
        has_transactions=True,
    ),
    FrontPlan(
        (
            DoorPlan("kafka", lambda listen: listen.kafka_port),
            DoorPlan(
                "kafka_tls", lambda listen: listen.kafka_tls_port, lambda tls: tls.kafka_client_auth
            ),
        ),
        _kafka,
        has_transactions=True,
    ),
    FrontPlan(
        (
            DoorPlan("mqtt", lambda listen: listen.mqtt_port),
            DoorPlan(MQTT_WS, lambda listen: listen.mqtt_ws_port),
            DoorPlan(
                "mqtt_tls", lambda listen: listen.mqtt_tls_port, lambda tls: tls.mqtt_client_auth
            ),
            DoorPlan(
                MQTT_WSS, lambda listen: listen.mqtt_wss_port, lambda tls: tls.mqtt_client_auth
            ),
        ),
        _mqtt,
    ),
    FrontPlan(
        (
            DoorPlan("http", lambda listen: listen.http_port),
            DoorPlan("https", lambda listen: listen.https_port, lambda tls: tls.https_client_auth),
        ),
        _http,
    ),
    FrontPlan((DoorPlan(BOOKIE, lambda listen: listen.bookie_port),), _bookie),
)
FOREIGN_CLIENTS: Final = "http"
"""The door named to HTTP clients that connect to another front's door."""
DOORS: Final = tuple(door for front in FRONTS for door in front.doors)


def door_plans(settings: Settings) -> Sequence[DoorPlan]:
    """All doors to open with these settings."""
    asked = [plan for plan in DOORS if plan.port(settings.listen) >= 0]
    return (*asked, *map(_mount_plan, mount_listeners(settings.mqtt.mount_points)))


def _mount_plan(listener: MountListener) -> DoorPlan:
    def client_auth(tls: Tls) -> ClientAuth:
        return tls.mqtt_client_auth

    secure = client_auth if listener.kind in TLS_KINDS else None
    return DoorPlan(listener.door, lambda _listen: listener.port, secure)


def http_address(settings: Settings, doors: Mapping[str, Door]) -> HttpAddress:
    """Where the link sends HTTP clients that connect to a door of another protocol."""
    door = doors.get(FOREIGN_CLIENTS)
    if door is None:
        return NO_HTTP
    return HttpAddress(settings.listen.advertised_host, door.socket.getsockname()[1])


def make_fronts(parts: Parts) -> list[Front]:
    """The fronts with open doors, and those that have transactions."""
    doors = parts.doors
    opened = [
        (front, [doors[plan.name] for plan in front.doors if plan.name in doors])
        for front in FRONTS
    ]
    return [front.make(parts, its) for front, its in opened if its or front.has_transactions]
