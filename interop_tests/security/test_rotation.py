"""Certificates and authorities that change while clients are connected."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pulsar
import pytest
from confluent_kafka.admin import AdminClient
from cryptography import x509

from interop_tests.keys import Authority
from interop_tests.mqtt.conftest import Paho
from interop_tests.waiting import until
from magnetar import Standalone, standalone

from .certified import DOORS
from .pulsar_people import NAMESPACE

SECONDS = 20
LOOK_SECONDS = 0.05
TLS_DOORS = ("pulsar_tls", "kafka_tls", "mqtt_tls", "mqtt_wss", "https")


class Files:
    """The files of a server's `[tls]`, which are replaced while it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.old, self.new = (Authority(folder, name) for name in ("old", "new"))
        self.live = {name: str(folder / f"live-{name}.pem") for name in ("cert", "key", "ca")}
        self.server_authority = Authority(folder, "servers")
        self.serve("first")
        self.trust(self.old, self.new)

    def serve(self, name: str) -> int:
        """Give the server another certificate; returns its serial number."""
        certificate, key = self.server_authority.issue(name, host="localhost")
        self._put("cert", Path(certificate).read_bytes())
        self._put("key", Path(key).read_bytes())
        return x509.load_pem_x509_certificate(Path(certificate).read_bytes()).serial_number

    def trust(self, *authorities: Authority) -> None:
        self._put("ca", b"".join([Path(each.certificate).read_bytes() for each in authorities]))

    def _put(self, name: str, data: bytes) -> None:
        new = Path(f"{self.live[name]}.new")
        new.write_bytes(data)
        new.chmod(0o600)
        new.replace(self.live[name])

    def context(self, pair: tuple[str, str] | None = None) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=self.server_authority.certificate)
        if pair is not None:
            made.load_cert_chain(*pair)
        return made


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def server(files: Files) -> Iterator[Standalone]:
    modes = {f"{door}_client_auth": "requested" for door in DOORS}
    live = files.live
    tls = {"certificate": live["cert"], "key": live["key"], "client_ca": live["ca"], **modes}
    security = {"client_certificates": True, "superusers": ["ali", "bob"]}
    with standalone(tls=tls, security=security) as found:
        yield found


def serial_at(server: Standalone, files: Files, door: str) -> int:
    """The serial number of the certificate that a door shows to a new connection."""
    host, port = server.listeners[door].split(":")
    with (
        socket.create_connection((host, int(port)), SECONDS) as plain,
        files.context().wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        der = secure.getpeercert(binary_form=True)
        assert der is not None
        return x509.load_der_x509_certificate(der).serial_number


def admitted(server: Standalone, files: Files, pair: tuple[str, str]) -> bool:
    """Whether HTTP knows who shows that certificate."""
    host, port = server.listeners["https"].split(":")
    request = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with (
        suppress(ssl.SSLError, ConnectionError),
        socket.create_connection((host, int(port)), SECONDS) as plain,
        files.context(pair).wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(request)
        return secure.recv(4096).startswith(b"HTTP/1.1 200")
    return False


def by_pulsar(connect: Any, server: Standalone, files: Files, pair: tuple[str, str]) -> Any:
    return connect(
        server.pulsar_tls_url,
        authentication=pulsar.AuthenticationTLS(*pair),
        tls_trust_certs_file_path=files.server_authority.certificate,
        operation_timeout_seconds=5,
    )


def test_a_new_certificate_disturbs_nobody(
    connect: Any, server: Standalone, files: Files, topic: str
) -> None:
    client = by_pulsar(connect, server, files, files.old.issue("ali"))
    producer, consumer = client.create_producer(topic), client.subscribe(topic, "s")
    before = attachment(server, files, topic)
    wanted = files.serve("second")
    for door in TLS_DOORS:
        until(lambda door=door: serial_at(server, files, door) == wanted)
    producer.send(b"x")
    assert consumer.receive(SECONDS * 1000).data() == b"x"
    assert attachment(server, files, topic) == before, "the connections are the same"


def attachment(server: Standalone, files: Files, topic: str) -> tuple[str, str]:
    """The address of the producer, and since when it is connected."""
    import httpx

    verify = files.context(files.old.issue("bob"))
    with httpx.Client(base_url=server.https_url, verify=verify) as bob:
        stats = bob.get(f"/admin/v2/persistent/public/default/{topic}/stats").json()
    (producer,) = stats["publishers"]
    return producer["address"], producer["connectedSince"]


def test_a_wrong_file_changes_nothing(server: Standalone, files: Files) -> None:
    """The log says so once; a right one afterwards counts."""
    before = serial_at(server, files, "https")
    good = Path(files.live["cert"]).read_bytes()
    files._put("cert", good[: len(good) // 2])
    until(lambda: "stay in force" in server.logs())
    assert serial_at(server, files, "https") == before
    wanted = files.serve("second")
    until(lambda: serial_at(server, files, "https") == wanted)
    assert server.logs().count("stay in force") == 1


def test_an_authority_that_goes(connect: Any, server: Standalone, files: Files, topic: str) -> None:
    """Its certificates prove nothing any more, and who came with one is disconnected; those of
    another authority stay. So one replaces an authority: add the new one, then drop the old one.
    """
    old, new = files.old.issue("ali"), files.new.issue("bob")
    mine = by_pulsar(connect, server, files, old).create_producer(topic, send_timeout_millis=3_000)
    others = by_pulsar(connect, server, files, new).create_producer(f"{topic}-other")
    device = Paho(server.listeners["mqtt_tls"], version=5, reconnect_on_failure=False)
    device.client.tls_set_context(files.context(old))
    device.connect()
    kafka = AdminClient(
        {
            "bootstrap.servers": server.bootstrap_servers_tls,
            "security.protocol": "SSL",
            "ssl.ca.location": files.server_authority.certificate,
            "ssl.certificate.location": old[0],
            "ssl.key.location": old[1],
            "log_level": 0,
        }
    )
    assert kafka.list_topics(timeout=SECONDS).brokers
    for each in (mine, others):
        each.send(b"before")
    assert admitted(server, files, old)
    files.trust(files.new)
    assert str(device.disconnects.get(timeout=SECONDS)) == "Not authorized"
    until(lambda: not admitted(server, files, old))
    assert admitted(server, files, new)
    others.send(b"after")
    with pytest.raises(pulsar.PulsarException):
        mine.send(b"after")
    with pytest.raises(Exception, match=r"_TRANSPORT|_ALL_BROKERS_DOWN|Failed"):
        kafka.list_topics(timeout=3)
    device.disconnect()


def test_a_connection_of_http_that_is_open(server: Standalone, files: Files) -> None:
    """Each request is looked at, not the handshake only."""
    host, port = server.listeners["https"].split(":")
    request = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with (
        socket.create_connection((host, int(port)), SECONDS) as plain,
        files.context(files.old.issue("ali")).wrap_socket(
            plain, server_hostname="localhost"
        ) as secure,
    ):
        secure.sendall(request)
        assert secure.recv(4096).startswith(b"HTTP/1.1 200")
        files.trust(files.new)

        def refused() -> bool:
            secure.sendall(request)
            return secure.recv(4096).startswith(b"HTTP/1.1 401")

        until(refused)


def test_a_session_is_not_resumed_past_its_authority(server: Standalone, files: Files) -> None:
    """A ticket of TLS is no way around a withdrawn authority."""
    context = files.context(files.old.issue("ali"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # its session is there after the handshake
    host, port = server.listeners["https"].split(":")

    def reused(session: ssl.SSLSession | None) -> tuple[bool | None, ssl.SSLSession | None]:
        with (
            socket.create_connection((host, int(port)), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as secure,
        ):
            return secure.session_reused, secure.session

    session = reused(None)[1]
    assert reused(session)[0]
    files.trust(files.new)

    def refused() -> bool:
        try:
            return not reused(session)[0]
        except ssl.SSLError:
            return True

    until(refused)
    with pytest.raises(ssl.SSLError, match="alert"):
        reused(session)


def test_a_key_that_others_may_read(files: Files) -> None:
    os.chmod(files.live["key"], 0o644)
    tls = {"certificate": files.live["cert"], "key": files.live["key"]}
    with standalone(tls=tls) as server:
        assert "tls.key: others may read" in server.logs()


def test_certificates_behind_a_link(server: Standalone, files: Files) -> None:
    """As Kubernetes puts secrets: the file is a link into a folder that is replaced."""
    wanted = files.serve("second")
    folder = files.folder / "..data"
    folder.mkdir()
    for name in ("cert", "key"):
        shutil.move(files.live[name], folder / name)
        Path(files.live[name]).symlink_to(folder / name)
    until(lambda: serial_at(server, files, "kafka_tls") == wanted)


def test_grants_go_with_the_name_not_the_certificate(server: Standalone, files: Files) -> None:
    import httpx

    with httpx.Client(base_url=server.https_url, verify=files.context(files.old.issue("ali"))) as a:
        a.post(f"{NAMESPACE}/permissions/carol", json=["produce"]).raise_for_status()
    with httpx.Client(base_url=server.https_url, verify=files.context(files.new.issue("bob"))) as b:
        assert b.get(f"{NAMESPACE}/permissions").json()["carol"] == ["produce"]
