"""The list of all settings, derived from the section Structs. Pure.

A setting's path is `section.key`, its environment variable `MAGNETAR_SECTION_KEY`. Only the few
flags of the command line are registered by hand.
"""

from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from magnetar.settings.broker import Broker
from magnetar.settings.kafka import Kafka
from magnetar.settings.mqtt import Mqtt
from magnetar.settings.security import Security
from magnetar.settings.server import Limits, Listen, Log, Tls
from magnetar.settings.storage import BookieRequests, Ledgers, Storage


class Settings(Struct, frozen=True):
    """All settings, by section."""

    listen: Listen = Listen()
    tls: Tls = Tls()
    security: Security = Security()
    storage: Storage = Storage()
    ledgers: Ledgers = Ledgers()
    bookie: BookieRequests = BookieRequests()
    broker: Broker = Broker()
    kafka: Kafka = Kafka()
    mqtt: Mqtt = Mqtt()
    limits: Limits = Limits()
    log: Log = Log()


class Setting(Struct, frozen=True):
    """One line of the configuration."""

    section: str
    key: str
    type: Any
    default: Any
    description: str
    limits: Meta

    @property
    def path(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"MAGNETAR_{self.section}_{self.key}".upper()

    @property
    def bare_type(self) -> Any:
        return get_args(self.type)[0]

    @property
    def expected(self) -> str:
        """The values that this setting takes, in words: "a whole number from 0 to 65535"."""
        return _words(self.bare_type) + _range(self.limits)


KIND_WORDS: Final = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


def _words(kind: Any) -> str:
    if kind in KIND_WORDS:
        return KIND_WORDS[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inner))
    if origin is tuple:
        return "a list of " + _words(inner[0])
    return "a table of " + _words(inner[1])


def _range(limits: Meta) -> str:
    if limits.gt is not None:
        return f" above {limits.gt}" + (f", at most {limits.le}" if limits.le is not None else "")
    if limits.ge is not None and limits.le is not None:
        return f" from {limits.ge} to {limits.le}"
    if limits.ge is not None:
        return f" of at least {limits.ge}"
    return ", not empty" if limits.min_length else ""


def _settings() -> dict[str, Setting]:
    found = {}
    for section in msgspec.structs.fields(Settings):
        defaults = getattr(Settings(), section.name)
        for field in msgspec.structs.fields(section.type):
            assert get_origin(field.type) is Annotated, (
                f"the setting {section.name}.{field.name} has no description: declare it as "
                "Annotated[type, Meta(description=...)]"
            )
            limits = get_args(field.type)[1]
            default = getattr(defaults, field.name)
            setting = Setting(
                section.name, field.name, field.type, default, limits.description, limits
            )
            found[setting.path] = setting
    return found


SETTINGS: Final = MappingProxyType(_settings())
"""All settings by path, in the order of the sections."""

SECTIONS: Final = MappingProxyType({f.name: f.type for f in msgspec.structs.fields(Settings)})

FLAGS: Final = MappingProxyType(
    {
        "--data-dir": "storage.data_dir",
        "--host": "listen.host",
        "--advertised-host": "listen.advertised_host",
        "--pulsar-port": "listen.pulsar_port",
        "--kafka-port": "listen.kafka_port",
        "--mqtt-port": "listen.mqtt_port",
        "--mqtt-ws-port": "listen.mqtt_ws_port",
        "--http-port": "listen.http_port",
        "--bookie-port": "listen.bookie_port",
        "--pulsar-tls-port": "listen.pulsar_tls_port",
        "--kafka-tls-port": "listen.kafka_tls_port",
        "--mqtt-tls-port": "listen.mqtt_tls_port",
        "--mqtt-wss-port": "listen.mqtt_wss_port",
        "--https-port": "listen.https_port",
        "--tls-certificate": "tls.certificate",
        "--tls-key": "tls.key",
        "--tls-client-ca": "tls.client_ca",
        "--no-sync": "storage.sync",
        "--ready-file": "listen.ready_file",
        "--log-level": "log.level",
        "--log-format": "log.format",
    }
)
"""The flags of the command line and the settings that they set."""
