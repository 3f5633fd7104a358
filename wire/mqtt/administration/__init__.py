"""Administration of MQTT's clients, for the ports of `core/ports/client_administration.py`."""

from magnetar.core.ports.client_administration import ClientAdministration
from magnetar.wire.mqtt.administration.retained import MqttRetainedAdministration
from magnetar.wire.mqtt.administration.rules import MqttRuleAdministration
from magnetar.wire.mqtt.administration.sessions import MqttSessionAdministration
from magnetar.wire.mqtt.administration.shared_subscriptions import (
    MqttSharedSubscriptionAdministration,
)
from magnetar.wire.mqtt.services import MqttServices


def administration_of(services: MqttServices) -> ClientAdministration:
    """All of it, for the clients of one namespace."""
    return ClientAdministration(
        MqttSessionAdministration(services),
        MqttRetainedAdministration(services),
        MqttRuleAdministration(services),
        MqttSharedSubscriptionAdministration(services),
    )
