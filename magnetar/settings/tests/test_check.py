"""Settings that contradict each other."""

import pytest

from magnetar.operator_error import OperatorError
from magnetar.settings import load


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[tls]\nkey = 'k.pem'", "m.toml: tls.key needs tls.certificate to be set"),
        ("[tls]\nclient_ca = 'c.pem'", "m.toml: tls.client_ca needs tls.certificate to be set"),
        (
            "[tls]\ncertificate = 'c.pem'\nhttps_client_auth = 'requested'",
            "m.toml: tls.https_client_auth needs tls.client_ca to be set",
        ),
        (
            "[security]\nclient_certificates = true",
            "m.toml: security.client_certificates needs tls.client_ca, which verifies them",
        ),
        (
            "[security]\ncertificate_mapping_rules = 'RULE:CN=(.*)/$1/'",
            "m.toml: security.certificate_mapping_rules needs security.certificate_name = "
            '"subject"',
        ),
        (
            "[security]\ncertificate_name = 'subject'\ncertificate_mapping_rules = 'RULE:a'",
            "m.toml: security.certificate_mapping_rules: 'RULE:a' is neither DEFAULT nor "
            "RULE:pattern/replacement/ with L or U",
        ),
        (
            "[listen]\npulsar_port = -1\nkafka_port = -1\nmqtt_port = -1\nmqtt_ws_port = -1\n"
            "http_port = -1\n",
            "every port of [listen] is closed",
        ),
        (
            "[listen]\npulsar_tls_port = 1",
            "m.toml: listen.pulsar_tls_port needs tls.certificate to be set",
        ),
        (
            "[listen]\npulsar_port = 7\nhttp_port = 7",
            "listen.http_port and listen.pulsar_port are both 7",
        ),
        (
            "[listen]\npulsar_port = 8443\n[tls]\ncertificate = 'c.pem'",
            "listen.https_port and listen.pulsar_port are both 8443",
        ),
        (
            "[listen]\nkafka_tls_port = 1",
            "m.toml: listen.kafka_tls_port needs tls.certificate to be set",
        ),
        (
            "[mqtt]\nnamespace = 'public'",
            "m.toml: mqtt.namespace: 'public' is not a namespace: expected tenant/namespace",
        ),
        (
            "[mqtt.rules]\n'orders/#/x' = 'orders'",
            "m.toml: mqtt.rules: 'orders/#/x': 'orders/#/x' is no topic filter",
        ),
        (
            "[mqtt.rules]\n'orders/#' = 'x{each}'",
            "m.toml: mqtt.rules: 'orders/#': {each} stands alone: it names each topic as MoP does",
        ),
        (
            "[mqtt.rules]\n'$SYS/#' = 'orders'",
            "m.toml: mqtt.rules: '$SYS/#': topics below $SYS are not stored",
        ),
        (
            "[mqtt.rules]\n'orders/#' = 'orders-partition-1'",
            "m.toml: mqtt.rules: 'orders/#': orders-partition-1 is one partition: name the "
            "partitioned topic",
        ),
        (
            "[mqtt]\nwebsocket_origins = ['app.example.org']",
            "m.toml: mqtt.websocket_origins: 'app.example.org' does not begin with http:// or "
            "https://",
        ),
        (
            "[mqtt.mount_points]\n'acme/devices' = '1883'",
            "mqtt.mount_points (acme/devices) and listen.mqtt_port are both 1883",
        ),
        (
            "[mqtt.mount_points]\n'acme/devices' = 'tls:1'",
            "m.toml: mqtt.mount_points: tls and wss need tls.certificate to be set",
        ),
        (
            "[tls]\ncertificate = 'c.pem'\nmqtt_client_auth = 'requested'",
            "m.toml: tls.mqtt_client_auth needs tls.client_ca to be set",
        ),
        (
            "[kafka.advertised_listeners]\nplain = 'h:1'",
            "m.toml: kafka.advertised_listeners: there is no listener plain, "
            "only kafka and kafka_tls",
        ),
        (
            "[kafka.advertised_listeners]\nkafka = 'h'",
            "m.toml: kafka.advertised_listeners: kafka is 'h', not host:port",
        ),
        (
            "[storage]\ndisk_usage_threshold = 0.5",
            "storage.disk_usage_low_water_mark is above storage.disk_usage_threshold",
        ),
        (
            "[ledgers]\nmax_rollover_minutes = 5",
            "ledgers.min_rollover_minutes is above ledgers.max_rollover_minutes",
        ),
        (
            "[limits]\nmemory_budget_mb = 63",
            "a message may have 16777216 bytes: limits.memory_budget_mb must be 64 or more",
        ),
        (
            "[log.levels]\nwier = 'debug'",
            "m.toml: log.levels: there is no part wier; "
            "parts begin with magnetar, core, bookie, wire, hypercorn",
        ),
        (
            '[mqtt]\nacl_file = "acl"',
            "m.toml: mqtt.acl_file has no effect while everybody may do everything: set up "
            "authentication (docs/security.md)",
        ),
    ],
)
def test_a_contradiction_is_one_sentence(toml: str, sentence: str) -> None:
    with pytest.raises(OperatorError) as caught:
        load(toml, "m.toml")
    assert str(caught.value) == sentence


def test_a_tls_port_that_is_typed_needs_a_certificate_whatever_its_number() -> None:
    sentence = "^--https-port: listen.https_port needs tls.certificate to be set$"
    with pytest.raises(OperatorError, match=sentence):
        load(flags={"--https-port": "8443"})
    load("[listen]\nhttps_port = 8443")


def test_who_wants_certificates_of_clients_says_whose_they_are() -> None:
    """Otherwise no certificate would be requested, and nobody would notice."""
    expected = {"MAGNETAR_TLS_KAFKA_CLIENT_AUTH": "required"}
    sentence = "^MAGNETAR_.*_AUTH: tls.kafka_client_auth needs tls.client_ca to be set$"
    with pytest.raises(OperatorError, match=sentence):
        load("[tls]\ncertificate = 'c.pem'", environment=expected)
    sentence = "^m.toml: tls.kafka_client_auth needs tls.client_ca to be set$"
    with pytest.raises(OperatorError, match=sentence):
        load("[tls]\ncertificate = 'c.pem'\nkafka_client_auth = 'required'", "m.toml")
    load("[tls]\ncertificate = 'c.pem'\nclient_ca = 'ca.pem'", environment=expected)


def test_several_free_ports_are_no_contradiction() -> None:
    assert load("[listen]\npulsar_port = 0\nhttp_port = 0").settings.listen.http_port == 0


def test_a_tls_port_is_free_for_others_while_there_is_no_tls() -> None:
    assert load("[listen]\npulsar_port = 6651").settings.listen.pulsar_port == 6651
