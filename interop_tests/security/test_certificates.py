"""Clients that show certificates, at every door with TLS."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import socket
import ssl
import subprocess
import warnings
from collections.abc import Iterator
from typing import Any

import aiokafka
import httpx
import pulsar
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.x509.oid import NameOID
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from interop_tests.keys import Authority
from interop_tests.mqtt.conftest import Paho

from .certified import People, certified
from .pulsar_people import NAMESPACE, SECRET, token

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SECONDS = 20
PAST = -datetime.timedelta(hours=1)
CN, ORGANIZATION = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """`root` by certificate, and `bob` by a token too."""
    folder = tmp_path_factory.mktemp("people")
    secret = folder / "secret.key"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    with certified(folder, {"token_secret_key": str(secret)}) as found:
        yield found


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "theirs")


Pair = tuple[str, str]


def wrong_pairs(people: People, stranger: Authority) -> dict[str, Pair]:
    """Certificates that prove nothing."""
    issue = people.authority.issue
    nameless = x509.Name([x509.NameAttribute(ORGANIZATION, "Acme")])
    control = x509.Name([x509.NameAttribute(CN, "root\n")])
    return {
        "of another authority": stranger.issue("root"),
        "expired": issue("old-root", until=PAST, subject=name("root")),
        "without a name": issue("nameless", subject=nameless),
        "with a name that is none": issue("control", subject=control),
    }


def name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(CN, common)])


# -- Pulsar -----------------------------------------------------------------------------------


def by_pulsar(connect: Any, people: People, pair: Pair | None, **options: Any) -> pulsar.Client:
    shown = {} if pair is None else {"authentication": pulsar.AuthenticationTLS(*pair)}
    return connect(
        people.server.pulsar_tls_url,
        tls_trust_certs_file_path=people.authority.certificate,
        tls_validate_hostname=True,
        **{"operation_timeout_seconds": 5, **shown, **options},
    )


def test_pulsar(connect: Any, people: People, topic: str) -> None:
    people.grant("ali", "produce", "consume")
    client = by_pulsar(connect, people, people.pair("ali"))
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"x")
    assert consumer.receive(SECONDS * 1000).data() == b"x"
    stranger = by_pulsar(connect, people, people.pair("eve"))
    with pytest.raises(pulsar.AuthorizationError):
        stranger.create_producer(topic)


def test_pulsar_with_a_certificate_and_another_method(
    connect: Any, people: People, topic: str
) -> None:
    """As Apache's broker: the method says who it is. Without one a certificate proves nothing."""
    people.grant("bob", "produce")
    certificate, key = people.pair("eve")
    shown = {"tls_certificate_file_path": certificate, "tls_private_key_file_path": key}
    bob = pulsar.AuthenticationToken(token("bob"))
    client = by_pulsar(connect, people, None, authentication=bob, **shown)
    client.create_producer(topic).send(b"x")
    certificate, key = people.pair("root")
    shown = {"tls_certificate_file_path": certificate, "tls_private_key_file_path": key}
    with pytest.raises(pulsar.PulsarException):
        by_pulsar(connect, people, None, **shown).create_producer(topic)


def test_pulsar_without_a_proof(
    connect: Any, people: People, stranger: Authority, topic: str
) -> None:
    for what, pair in wrong_pairs(people, stranger).items():
        client = by_pulsar(connect, people, pair, operation_timeout_seconds=2)
        with pytest.raises(pulsar.PulsarException):
            print(what, client.create_producer(topic))
    plain = connect(
        people.server.pulsar_url,
        authentication=pulsar.AuthenticationTLS(*people.pair("root")),
        operation_timeout_seconds=2,
    )
    with pytest.raises(pulsar.PulsarException):
        plain.create_producer(topic)


# -- Kafka ------------------------------------------------------------------------------------


def by_kafka(people: People, pair: Pair | None, **more: Any) -> dict[str, Any]:
    shown = {} if pair is None else dict(
        zip(("ssl.certificate.location", "ssl.key.location"), pair, strict=True)
    )  # fmt: skip
    return {
        "bootstrap.servers": people.server.bootstrap_servers_tls,
        "security.protocol": "SSL",
        "ssl.ca.location": people.authority.certificate,
        "log_level": 0,
        **shown,
        **more,
    }


def sent(config: dict[str, Any], topic: str) -> KafkaError | None:
    """Send one record; return its error."""
    outcome: list[KafkaError | None] = []
    producer = Producer({"message.timeout.ms": SECONDS * 500, **config})
    producer.produce(topic, b"x", on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(SECONDS) == 0
    return outcome[0]


def test_librdkafka(people: People, topic: str) -> None:
    assert sent(by_kafka(people, people.pair("root")), topic) is None
    refused = sent(by_kafka(people, people.pair("eve")), topic)
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    people.grant("ali", "produce")
    assert sent(by_kafka(people, people.pair("ali")), topic) is None


def test_sasl_decides_over_the_certificate(people: People, topic: str) -> None:
    """A principal of SASL wins, as on Kafka's listener for SASL over SSL."""
    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "x"}
    mine = {"sasl.password": f"token:{token('root')}"}
    assert sent(by_kafka(people, people.pair("eve"), **sasl, **mine), topic) is None
    lesser = {"sasl.password": f"token:{token('mallory')}"}
    refused = sent(by_kafka(people, people.pair("root"), **sasl, **lesser), topic)
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    wrong = {"sasl.password": "wrong"}
    admin = AdminClient(by_kafka(people, people.pair("root"), **sasl, **wrong))
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)


def test_kafka_without_a_proof(people: People, stranger: Authority) -> None:
    for what, pair in {**wrong_pairs(people, stranger), "none": None}.items():
        admin = AdminClient(by_kafka(people, pair))
        with pytest.raises(KafkaException):
            print(what, admin.list_topics(timeout=3))


def test_kafka_python(people: People, topic: str) -> None:
    certificate, key = people.pair("root")
    producer = KafkaProducer(
        bootstrap_servers=people.server.bootstrap_servers_tls,
        security_protocol="SSL",
        ssl_cafile=people.authority.certificate,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    assert producer.send(topic, b"x").get(SECONDS).offset == 0
    producer.close()


def test_aiokafka(people: People, topic: str) -> None:
    async def play() -> Any:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=people.server.bootstrap_servers_tls,
            security_protocol="SSL",
            ssl_context=people.trust("root"),
        )
        async with producer:
            return await producer.send_and_wait(topic, b"x")

    assert asyncio.run(play()).offset == 0


# -- MQTT -------------------------------------------------------------------------------------


def device(
    people: People, trust: ssl.SSLContext, client_id: str = "", over: str = "mqtt_tls", **more: Any
) -> Paho:
    made = Paho(people.server.listeners[over], client_id, reconnect_on_failure=False, **more)
    made.client.tls_set_context(trust)
    return made


def outcome(one: Paho) -> str:
    """What the server says to CONNECT."""
    try:
        one.client.connect(one.host, one.port)
        one.client.loop_start()
        return str(one.connacks.get(timeout=SECONDS)[1])
    finally:
        one.disconnect()


@pytest.mark.parametrize(
    ("over", "more"),
    [("mqtt_tls", {"version": 4}), ("mqtt_tls", {"version": 5}),
     ("mqtt_wss", {"version": 5, "transport": "websockets"})],
)  # fmt: skip
def test_paho(people: People, over: str, more: dict[str, Any], topic: str) -> None:
    people.grant("dev", "produce", "consume")
    one = device(people, people.trust("dev"), over=over, **more)
    one.connect()
    assert one.subscribe(f"{topic}/#", 1) == [1]
    one.publish(f"{topic}/t", b"x", 1)
    assert [message.payload for message in one.take(1)] == [b"x"]
    one.disconnect()
    assert outcome(device(people, people.trust(), over=over, **more)) == "Not authorized"


def test_the_name_in_connect_decides(people: People) -> None:
    """Over the certificate, other than with Mosquitto's `use_identity_as_username`."""
    with_token = device(people, people.trust("eve"))
    with_token.client.username_pw_set("x", token("root"))
    assert outcome(with_token) == "Success"
    wrong = device(people, people.trust("root"))
    wrong.client.username_pw_set("x", "wrong")
    assert outcome(wrong) in ("Bad user name or password", "Not authorized")


def test_mqtt_without_a_proof(people: People, stranger: Authority) -> None:
    pairs = wrong_pairs(people, stranger)
    for what in ("without a name", "with a name that is none"):
        assert outcome(device(people, people.trust(pair=pairs[what]))) == "Not authorized", what
    for what in ("of another authority", "expired"):
        host, port = people.server.listeners["mqtt_tls"].split(":")
        with (
            socket.create_connection((host, int(port)), SECONDS) as plain,
            people.trust(pair=pairs[what]).wrap_socket(
                plain, server_hostname="localhost"
            ) as secure,
            pytest.raises((ssl.SSLError, ConnectionError)),  # TLS 1.3 tells after its handshake
        ):
            secure.recv(1)


def test_a_certificate_that_expires_while_it_is_used(people: People) -> None:
    """Its connection ends, as with a token that nobody refreshes."""
    pair = people.authority.issue("brief", until=datetime.timedelta(seconds=5))
    one = device(people, people.trust(pair=pair), version=5)
    one.connect()
    assert str(one.disconnects.get(timeout=SECONDS)) == "Not authorized"
    one.disconnect()


def test_mosquittos_tools(people: People, topic: str) -> None:
    people.grant("dev", "produce")
    tool = shutil.which("mosquitto_pub")
    assert tool is not None, "these tests need mosquitto-clients, a package of Debian"
    host, port = people.server.listeners["mqtt_tls"].split(":")

    def publish(*more: str) -> subprocess.CompletedProcess[str]:
        where = ("-h", host, "-p", port, "--cafile", people.authority.certificate)
        return subprocess.run(
            [tool, *where, "-V", "5", "-q", "1", "-t", topic, "-m", "x", *more],
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip

    certificate, key = people.pair("dev")
    assert publish("--cert", certificate, "--key", key).returncode == 0
    refused = publish()
    assert refused.returncode != 0
    assert "not authori" in (refused.stdout + refused.stderr).lower()


# -- HTTP -------------------------------------------------------------------------------------


def test_http(people: People) -> None:
    with people.http("root") as root, people.http("eve") as eve, people.http() as nobody:
        assert root.get("/admin/v2/tenants").status_code == 200
        assert eve.get("/admin/v2/tenants").status_code == 403
        assert nobody.get("/admin/v2/tenants").status_code == 401
        assert nobody.get("/healthz").status_code == 200
        bearer = {"authorization": f"Bearer {token('root')}"}
        assert eve.get("/admin/v2/tenants", headers=bearer).status_code == 200
        forged = {"authorization": f"Bearer {token('root', secret=b'x' * 32)}"}
        assert root.get("/admin/v2/tenants", headers=forged).status_code == 401


def test_http_without_a_proof(people: People, stranger: Authority) -> None:
    pairs = wrong_pairs(people, stranger)
    for what in ("without a name", "with a name that is none"):
        answer = httpx.get(
            f"{people.server.https_url}/admin/v2/tenants", verify=people.trust(pair=pairs[what])
        )
        assert answer.status_code == 401, what
    for what in ("of another authority", "expired"):
        with pytest.raises(httpx.TransportError, match="alert"):
            httpx.get(f"{people.server.https_url}/", verify=people.trust(pair=pairs[what]))


def test_http_looks_topics_up(connect: Any, people: People, topic: str) -> None:
    """A client whose service URL is https takes its certificate there, too."""
    people.grant("ali", "produce")
    client = connect(
        people.server.https_url,
        authentication=pulsar.AuthenticationTLS(*people.pair("ali")),
        tls_trust_certs_file_path=people.authority.certificate,
        tls_validate_hostname=True,
    )
    client.create_producer(topic).send(b"x")


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("security", "role"),
    [
        ({"certificate_name": "subject"}, "CN=Ali,O=Acme"),
        (
            {
                "certificate_name": "subject",
                "certificate_mapping_rules": "RULE:^CN=(.*?),O=(.*?)$/$1@$2/L,DEFAULT",
            },
            "ali@acme",
        ),
        ({"certificate_name": "dns"}, "localhost"),
    ],
)
def test_other_names(tmp_path: Any, security: dict[str, Any], role: str, topic: str) -> None:
    """One server for each: the role is a superuser, who alone may list tenants."""
    subject = x509.Name([x509.NameAttribute(ORGANIZATION, "Acme"), x509.NameAttribute(CN, "Ali")])
    with certified(tmp_path, {**security, "superusers": [role]}) as people:
        pair = people.authority.issue("ali", subject=subject)
        answer = httpx.get(
            f"{people.server.https_url}/admin/v2/tenants", verify=people.trust(pair=pair)
        )
        assert answer.status_code == 200, answer.text
        assert sent(by_kafka(people, pair), topic) is None


# -- bytes of the other kind ------------------------------------------------------------------


@pytest.mark.parametrize("door", ["pulsar_tls", "kafka_tls", "mqtt_tls", "mqtt_wss", "https"])
def test_plain_bytes_at_a_door_for_tls(people: People, door: str) -> None:
    for begin in (b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x10\x0c\0\x04MQTT\x04\x02\0<\0\0"):
        assert b"HTTP/1.1 2" not in said_to(people, door, begin)
    with people.http("root") as root:
        assert root.get("/admin/v2/tenants").status_code == 200


@pytest.mark.parametrize("door", ["pulsar", "kafka", "mqtt", "mqtt_ws", "http"])
def test_tls_at_a_plain_door(people: People, door: str) -> None:
    host, port = people.server.listeners[door].split(":")
    with (
        socket.create_connection((host, int(port)), SECONDS) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        people.trust("root").wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("door", ["pulsar_tls", "kafka_tls", "mqtt_tls", "https"])
def test_a_client_that_wants_to_renegotiate_is_refused(people: People, door: str) -> None:
    certificate, key = people.pair("root")
    shell = subprocess.run(
        ["openssl", "s_client", "-tls1_2", "-connect", people.server.listeners[door],
         "-CAfile", people.authority.certificate, "-cert", certificate, "-key", key],
        input=b"R\n", capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    said = (shell.stdout + shell.stderr).decode(errors="replace")
    assert "Verify return code: 0" in said, "it has connected"
    assert "RENEGOTIATING" in said
    assert "no renegotiation" in said
    with people.http("root") as root:
        assert root.get("/admin/v2/tenants").status_code == 200


@pytest.mark.parametrize("door", ["pulsar_tls", "https"])
def test_old_tls_is_refused(people: People, door: str) -> None:
    shell = subprocess.run(
        ["openssl", "s_client", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0",
         "-connect", people.server.listeners[door]],
        input=b"", capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert b"protocol version" in shell.stderr
    assert b"Cipher is (NONE)" in shell.stdout


def said_to(people: People, door: str, begin: bytes) -> bytes:
    host, port = people.server.listeners[door].split(":")
    heard = b""
    with socket.create_connection((host, int(port)), SECONDS) as one:
        one.sendall(begin)
        one.shutdown(socket.SHUT_WR)
        while piece := one.recv(4096):
            heard += piece
    return heard


def test_superusers_alone_grant(people: People) -> None:
    with people.http("eve") as eve:
        answer = eve.post(f"{NAMESPACE}/permissions/eve", json=["produce"])
        assert answer.status_code == 403


def test_a_websocket_shows_it(people: People, topic: str) -> None:
    """With what else a client may say over WebSocket: a token, of a header or of the query."""
    people.grant("ali", "produce")
    url = people.server.https_url.replace("https://", "wss://")
    url = f"{url}/ws/v2/producer/persistent/public/default/{topic}"
    with connect(url, ssl=people.trust("ali")) as producer:
        producer.send('{"payload": "aGk="}')
        assert '"result":"ok"' in str(producer.recv(timeout=20))
    bearer = {"authorization": f"Bearer {token('root')}"}
    for context, more, headers, status in (
        (people.trust("eve"), "", {}, 403),
        (people.trust(), "", {}, 401),
        (people.trust(), "?token=forged", {}, 401),
        (people.trust("eve"), "", bearer, 101),
        (people.trust(), f"?token={token('root')}", {}, 101),
    ):
        try:
            connect(url + more, ssl=context, additional_headers=headers).close()
            found = 101
        except InvalidStatus as refused:
            found = refused.response.status_code
        assert found == status, (more, headers)
