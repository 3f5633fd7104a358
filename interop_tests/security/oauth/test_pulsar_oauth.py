"""Pulsar's clients with OAuth 2.0: they fetch tokens, and others when these expire."""

import json

import pulsar
import pytest

from .conftest import ELSEWHERE, accepted, trusting
from .issuer import AUDIENCE, RegisteredClient, issuing

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(180)]

RECEIVE_MS = 15_000
HASTY = {"operation_timeout_seconds": 2, "connection_timeout_ms": 1_000}


@pytest.fixture
def proof(issuer, tmp_path):
    """What Python's client is given to prove who it is."""

    def made(name, audience=AUDIENCE, secret=None, issuer=issuer):
        known = {
            "issuer_url": issuer.url,
            "private_key": issuer.credentials(tmp_path, name, secret),
            "audience": audience,
        }
        return pulsar.AuthenticationOauth2(json.dumps(known))

    return made


@pytest.fixture
def arguments(issuer, tmp_path):
    """The same for scenes."""

    def made(name, audience=AUDIENCE, secret=None):
        credentials = issuer.credentials(tmp_path, name, secret)
        return {"issuer": issuer.url, "credentials": credentials, "audience": audience}

    return made


def exchange(client, topic):
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"hello")
    assert consumer.receive(RECEIVE_MS).data() == b"hello"


def refused(client, topic):
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(topic)


def test_python(connect, server, administrator, proof, topic):
    administrator.grant("alice", "produce", "consume")
    exchange(connect(server.pulsar_url, authentication=proof("alice")), topic)


def test_python_with_what_is_wrong(connect, server, proof, topic):
    for wrong in (
        proof("alice", audience=ELSEWHERE),
        proof("root", secret="not the secret"),
    ):
        refused(connect(server.pulsar_url, authentication=wrong, **HASTY), topic)


def test_python_goes_on_with_other_tokens(connect, server, administrator, issuer, proof, topic):
    administrator.grant("brief", "produce")
    client = connect(server.pulsar_url, authentication=proof("brief"))
    producer = client.create_producer(topic)
    before, asked = administrator.attached(topic)[0][0], issuer.asked()
    while issuer.asked() < asked + 2:
        producer.send(b"on and on")
    after = administrator.attached(topic)[0][0]
    assert before["address"] == after["address"], "the connection is the same"


@pytest.mark.java
def test_java(java, server, administrator, arguments, topic):
    administrator.grant("alice", "produce", "consume")
    url = server.pulsar_url
    seen = java.play("publish.sync", url, topic, **arguments("alice"))
    assert seen["ids"] == seen["sent"]
    lost = arguments("alice", audience=ELSEWHERE)
    outcome = java.play("access.create", url, topic, patience=3, **lost)
    assert outcome == "AuthenticationException"
    unknown = arguments("root", secret="not the secret")
    assert java.play("access.create", url, topic, patience=3, **unknown) != "none"
    outcome = java.play("access.create", url, topic, patience=3, **arguments("stranger"))
    assert outcome == "AuthorizationException"


@pytest.mark.go
def test_go(pulsar_go, server, administrator, arguments, topic):
    administrator.grant("alice", "produce", "consume")
    url = server.pulsar_url
    assert pulsar_go.play("access.exchange", url, topic, **arguments("alice")) == ["0"]
    for wrong in (
        arguments("alice", audience=ELSEWHERE),
        arguments("root", secret="not the secret"),
    ):
        outcome = pulsar_go.play("access.exchange", url, topic, patience=2, **wrong)
        assert isinstance(outcome, str), outcome


@pytest.mark.parametrize(
    "process",
    [
        pytest.param("java", marks=pytest.mark.java),
        pytest.param("pulsar_go", marks=pytest.mark.go),
    ],
)
def test_they_go_on_with_other_tokens(
    request, server, administrator, issuer, arguments, topic, process
):
    administrator.grant("brief", "produce")
    driver = request.getfixturevalue(process)
    scene = driver.start(
        # a token of three seconds, for which the client is asked two seconds later
        "access.expiring",
        server.pulsar_url,
        topic,
        milliseconds=8_000,
        **arguments("brief"),
    )
    scene.wait_for("attached")
    before, asked = administrator.attached(topic)[0][0], issuer.asked()
    scene.wait_for("over")
    assert issuer.asked() > asked
    after = administrator.attached(topic)[0][0]
    scene.tell("looked")
    assert scene.result() > 0
    assert (before["address"], before["connectedSince"]) == (
        after["address"],
        after["connectedSince"],
    ), "the connection is the same"


def test_keys_that_are_rotated(connect, tmp_path, proof, topic):
    """New tokens are good as soon as the server has fetched the new key, and the old key no more
    then; connections are left alone.
    """
    with issuing(tmp_path, RegisteredClient("root")) as issuer, trusting(issuer) as server:
        old = issuer.token("root")
        client = connect(server.pulsar_url, authentication=proof("root", issuer=issuer))
        producer = client.create_producer(topic)
        issuer.rotate("ES256", "second")
        accepted(server, issuer.token("root"))
        producer.send(b"undisturbed")
        exchange(connect(server.pulsar_url, authentication=proof("root", issuer=issuer)), topic)
        refused(
            connect(server.pulsar_url, authentication=pulsar.AuthenticationToken(old), **HASTY),
            topic,
        )
