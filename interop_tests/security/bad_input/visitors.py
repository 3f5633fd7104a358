"""How a proof is said in each protocol, and what is found out about who has said it."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from typing import Any, Final

import httpx
from msgspec import Struct

from interop_tests.hostile.mqtt_peer import MqttPeer
from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.raw import Raw
from interop_tests.security.rights.test_kafka_matrix import REFUSED, codes, request_of
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.mqtt.tests import peer as mqtt
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

from .proofs import Proof

SECRETS: Final = "persistent://secret/vault/t"
"""A topic that only superusers may use."""
VISITORS: Final = itertools.count(1)


def source() -> str:
    """An address of loopback that nobody has come from: failures are limited by address."""
    number = next(VISITORS)
    return f"127.{1 + number // 60_000}.{number // 250 % 240}.{1 + number % 250}"


class Found(Struct, frozen=True):
    """What somebody may do who has been let in; None if it cannot be found out."""

    is_super: bool | None
    writes: bool | None


Visit = Callable[[Any, Proof], Found | None]
"""Say a proof to a server; None if it was refused."""


def pulsar_token(server: Any, proof: Proof) -> Found | None:
    return _pulsar(server, "token", proof.said)


def pulsar_basic(server: Any, proof: Proof) -> Found | None:
    return _pulsar(server, "basic", proof.said)


def _pulsar(server: Any, method: str, said: bytes) -> Found | None:
    with Raw(server, source=source()) as client:
        client.say(peer.connect(auth_method_name=method, auth_data=said))
        try:
            answer = client.receive()
        except (AssertionError, ConnectionResetError):
            return None  # closed without a word: a frame that is too large
        if answer.kind == "ERROR":
            assert answer.body.error == pb.AuthenticationError
            assert client.until_closed() == []
            return None
        assert answer.kind == "CONNECTED"
        is_super = client.ask(peer.producer(1, 1, SECRETS)).kind == "PRODUCER_SUCCESS"
        return Found(is_super, client.ask(peer.producer(2, 2, "of-the-matrix")).kind != "ERROR")


def kafka_token(server: Any, proof: Proof) -> Found | None:
    return _kafka(server, "PLAIN", b"\0x\0token:" + proof.said)


def kafka_bearer(server: Any, proof: Proof) -> Found | None:
    said = b"n,,\x01auth=Bearer " + proof.said + b"\x01\x01"
    return _kafka(server, "OAUTHBEARER", said)


def kafka_plain(server: Any, proof: Proof) -> Found | None:
    name, colon, password = proof.said.partition(b":")
    return _kafka(server, "PLAIN", b"\0" + name + (b"\0" if colon else b"") + password)


def _kafka(server: Any, mechanism: str, said: bytes) -> Found | None:
    with Peer(server, source()) as client:
        client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
        try:
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=said), 2)
            if mechanism == "OAUTHBEARER" and answer.auth_bytes:  # the reason comes first
                assert answer.error_code == 0
                answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        except (AssertionError, ConnectionResetError):
            return None
        if answer.error_code:
            assert client.is_closed()
            return None
        quorum, produced = (
            REFUSED.isdisjoint(codes(client.ask(*request_of(key))))
            for key in (ApiKey.DESCRIBE_QUORUM, ApiKey.PRODUCE)
        )
        return Found(quorum, produced)


def mqtt_token(server: Any, proof: Proof) -> Found | None:
    return _mqtt(server, "x", proof.said)


def mqtt_password(server: Any, proof: Proof) -> Found | None:
    name, _, password = proof.said.partition(b":")
    return _mqtt(server, name.decode(), password)


def _mqtt(server: Any, name: str, password: bytes) -> Found | None:
    if max(len(name.encode()), len(password)) > 65_535:
        return None  # it cannot be said
    with MqttPeer(server, source=source()) as client:
        try:
            reasons = client.connect("", username=name, password=password).reasons
        except (AssertionError, ConnectionResetError):
            return None
        if reasons != (0,):
            assert reasons[0] in (0x81, 0x82, 0x86, 0x87), reasons
            assert client.ends() == []
            return None
        client.say(mqtt.publish("m", b"x", qos=1, number=1, version=client.version))
        return Found(None, 0x87 not in client.take_until("PUBACK").reasons)


def http_bearer(server: Any, proof: Proof) -> Found | None:
    return _http(server, b"Bearer " + proof.said)


def http_basic(server: Any, proof: Proof) -> Found | None:
    return _http(server, b"Basic " + base64.b64encode(proof.said))


def _http(server: Any, header: bytes) -> Found | None:
    transport = httpx.HTTPTransport(local_address=source())
    with httpx.Client(transport=transport, base_url=server.http_url) as http:
        try:
            status = http.get("/admin/v2/tenants", headers={b"authorization": header}).status_code
        except httpx.HTTPError:
            return None  # no header at all
        if status in (400, 401, 431):
            return None
        assert status in (200, 403), status
        return Found(status == 200, None)


BY_TOKEN: Final[tuple[Visit, ...]] = (
    pulsar_token, kafka_token, kafka_bearer, mqtt_token, http_bearer
)  # fmt: skip
BY_PASSWORD: Final[tuple[Visit, ...]] = (pulsar_basic, kafka_plain, mqtt_password, http_basic)
