"""Both clients over TLS, with certificates made here: trusted, not trusted, and asked for."""

import datetime
import ipaddress
import os
import socket

import pulsar
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from magnetar import standalone

RECEIVE_MS = 15_000
DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates; everything is a file in its folder."""

    def __init__(self, folder, name):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.certificate = str(self._write(f"{name}.pem", made))

    def issue(self, name):
        """Paths of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = self._sign(subject, key, x509.SubjectAlternativeName(hosts))
        path = self._folder / f"{name}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(self._write(f"{name}.pem", made)), str(path)

    def _sign(self, subject, key, extension):
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, name, certificate):
        path = self._folder / name
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


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
