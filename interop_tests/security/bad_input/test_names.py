"""Names of topics that try to be those of another tenant, and how long an answer takes."""

from __future__ import annotations

import time

import bcrypt
import httpx
import pytest

from interop_tests.hostile.mqtt_peer import MqttPeer
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.raw import Raw
from magnetar import standalone
from magnetar.wire.kafka.conftest import produce_request
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.kafka.tests.batch import batch
from magnetar.wire.mqtt.tests import peer as mqtt
from magnetar.wire.pulsar.tests import peer

from .proofs import Proof, signed
from .visitors import kafka_plain, source

TRICKS = (
    "secret/vault/t", "persistent://secret/vault/t", "persistent://secret/vault/t-partition-0",
    "../../secret/vault/t", "public/default/../../secret/vault/t", "/secret/vault/t",
    "persistent://public/default/../../../secret/vault/t", "persistent:///secret/vault/t",
    "persistent://public/default/t/../../secret/vault/t", "secret%2Fvault%2Ft",
    "persistent://public/default/%2e%2e/%2e%2e/secret/vault/t", "secret\\vault\\t",
    "secret\u2215vault\u2215t", "\uff53ecret/vault/t", "secret/vault/t\0", "secret/vault/\u200bt",
    "public/default/t|s", "persistent://public/default/", "persistent://", "://", "/", "..",
    "PERSISTENT://secret/vault/t", "persistent://secret//vault/t", "secret/cluster/vault/t",
    "persistent://secret/cluster/vault/t", "non-persistent://secret/vault/t",
    "persistent://secret/vault/new", "secret/vault/new", "secret/new/t", "new/vault/t",
)  # fmt: skip
VAULT = "/admin/v2/persistent/secret/vault"


def stored(server):
    """What the vault has, and how much came in."""
    headers = {"authorization": f"Bearer {signed('root').decode()}"}
    with httpx.Client(base_url=server.http_url, headers=headers) as http:
        topics = http.get(VAULT).raise_for_status().json()
        stats = http.get(f"{VAULT}/t/stats").raise_for_status().json()
        others = http.get("/admin/v2/non-persistent/secret/vault").raise_for_status().json()
        namespaces = http.get("/admin/v2/namespaces/secret").raise_for_status().json()
    return topics, stats["msgInCounter"], stats["publishers"], others, namespaces


def by_pulsar(server, name):
    with Raw(server, source=source()) as client:
        client.introduce(auth_method_name="token", auth_data=signed("writer"))
        if client.ask(peer.producer(1, 1, name)).kind == "PRODUCER_SUCCESS":
            client.ask(peer.send(1, 0))


def by_kafka(server, name):
    with Peer(server, source()) as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        said = b"\0x\0token:" + signed("writer")
        client.ask(SaslAuthenticateRequest(auth_bytes=said), 2)
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
        client.ask(produce_request(name, batch(b"x")), 11)


def by_mqtt(server, name):
    with MqttPeer(server, source=source()) as client:
        client.connected("", username="x", password=signed("writer"))
        client.say(mqtt.subscribe((name, 1), number=2, version=client.version))
        client.say(mqtt.publish(name, b"x", qos=1, number=1, version=client.version))
        client.ends(at="PUBACK")


@pytest.mark.parametrize("way", [by_pulsar, by_kafka, by_mqtt])
def test_no_name_leads_to_another_tenant(server, beside, way):
    before = stored(server)
    for name in TRICKS:
        way(server, name)
    assert stored(server) == before
    beside.works()


@pytest.mark.alone
def test_unknown_names_take_as_long_as_wrong_passwords(tmp_path):
    """The least of several, in turns: a password is looked at for both, which takes bcrypt long."""
    begun = time.monotonic()
    stored = bcrypt.hashpw(b"builder", bcrypt.gensalt(12)).decode()
    takes = time.monotonic() - begun
    (tmp_path / "htpasswd").write_text(f"bob:{stored}\n")
    (tmp_path / "htpasswd").chmod(0o600)
    with standalone(security={"htpasswd": str(tmp_path / "htpasswd")}) as server:
        assert kafka_plain(server, Proof("", b"bob:builder")) is not None
        took = {b"bob:guess": 60.0, b"eve:guess": 60.0}
        for said in list(took) * 4:
            begun = time.monotonic()
            assert kafka_plain(server, Proof("", said)) is None
            took[said] = min(took[said], time.monotonic() - begun)
    assert abs(took[b"bob:guess"] - took[b"eve:guess"]) < takes / 2, (took, takes)
