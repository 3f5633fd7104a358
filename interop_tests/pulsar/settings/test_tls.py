"""Both clients over TLS, with certificates made here: trusted, not trusted, and asked for."""

import os
import socket
import ssl

import httpx
import pulsar
import pytest
from confluent_kafka.admin import AdminClient

from interop_tests.keys import Authority
from magnetar import standalone

RECEIVE_MS = 15_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "theirs")


@pytest.fixture(scope="module")
def secure(authority):
    certificate, key = authority.issue("server")
    with standalone(tls_certificate=certificate, tls_key=key) as server:
        yield server


@pytest.fixture(scope="module")
def asking(authority):
    """A server that wants to see its clients' certificates."""
    certificate, key = authority.issue("asking")
    with standalone(
        tls_certificate=certificate, tls_key=key, tls_client_ca=authority.certificate
    ) as server:
        yield server


def trusting(connect, server, authority, **options):
    return connect(
        server.pulsar_tls_url,
        tls_trust_certs_file_path=authority.certificate,
        tls_validate_hostname=True,
        **options,
    )


def exchange(client, topic):
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, chunking_enabled=True)
    for body in (b"small", os.urandom(10 * 1024 * 1024), b"small again"):
        producer.send(body)
        message = consumer.receive(RECEIVE_MS)
        assert message.data() == body
        consumer.acknowledge(message)


def test_python(connect, secure, authority, topic):
    exchange(trusting(connect, secure, authority), topic)


def test_both_doors_lead_to_the_same_topics(connect, secure, authority, topic):
    open_client, closed_client = connect(secure.pulsar_url), trusting(connect, secure, authority)
    consumer = closed_client.subscribe(topic, "s")
    open_client.create_producer(topic).send(b"x")
    assert consumer.receive(RECEIVE_MS).data() == b"x"


def test_server_that_is_not_trusted(connect, secure, stranger, topic):
    client = trusting(connect, secure, stranger, operation_timeout_seconds=2)
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(topic)


def test_open_words_at_the_closed_door(connect, secure, authority, topic):
    host, _, port = secure.pulsar_tls_url.removeprefix("pulsar+ssl://").rpartition(":")
    with socket.create_connection((host, int(port)), 15) as one:
        one.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
        while one.recv(4096):
            pass  # an alert, and the end
    exchange(trusting(connect, secure, authority), topic)


def test_certificates_of_clients(connect, asking, authority, stranger, topic):
    certificate, key = authority.issue("client")
    shown = {"tls_certificate_file_path": certificate, "tls_private_key_file_path": key}
    exchange(trusting(connect, asking, authority, **shown), topic)
    certificate, key = stranger.issue("client")
    strange = {"tls_certificate_file_path": certificate, "tls_private_key_file_path": key}
    for options in ({}, strange):
        client = trusting(connect, asking, authority, operation_timeout_seconds=2, **options)
        with pytest.raises(pulsar.PulsarException):
            client.create_producer(topic)


def test_each_port_asks_in_its_own_way(connect, authority, stranger, topic):
    """Checked where it is shown, not asked for, demanded."""
    certificate, key = authority.issue("choosing")
    modes = {"pulsar_client_auth": "requested", "kafka_client_auth": "none"}
    tls = {"certificate": certificate, "key": key, "client_ca": authority.certificate, **modes}
    mine, theirs = authority.issue("mine"), stranger.issue("theirs")
    with standalone(tls=tls) as server:
        exchange(trusting(connect, server, authority), f"{topic}-without")
        for pair, known in ((mine, True), (theirs, False)):
            shown = dict(
                zip(("tls_certificate_file_path", "tls_private_key_file_path"), pair, strict=True)
            )
            client = trusting(connect, server, authority, operation_timeout_seconds=3, **shown)
            if known:
                exchange(client, f"{topic}-with")
            else:
                with pytest.raises(pulsar.PulsarException):
                    client.create_producer(topic)
        kafka = {"bootstrap.servers": server.bootstrap_servers_tls, "security.protocol": "ssl"}
        admin = AdminClient({**kafka, "ssl.ca.location": authority.certificate})
        assert admin.list_topics(timeout=10).brokers
        trust = ssl.create_default_context(cafile=authority.certificate)
        with pytest.raises(httpx.TransportError, match="certificate required"):
            httpx.get(f"{server.https_url}/healthz", verify=trust)
        trust.load_cert_chain(*mine)
        assert httpx.get(f"{server.https_url}/healthz", verify=trust).text == "ok"


@pytest.mark.java
@pytest.mark.parametrize("family", ["publish.sync", "publish.chunks", "acks.retry"])
def test_java(java, secure, authority, topic, family):
    url = secure.pulsar_tls_url
    assert java.play(family, url, topic, trust=authority.certificate)


@pytest.mark.java
def test_java_shows_a_certificate(java, asking, authority, topic):
    certificate, key = authority.issue("java")
    options = {"trust": authority.certificate, "certificate": certificate, "key": key}
    assert java.play("publish.sync", asking.pulsar_tls_url, topic, **options)["sent"]
