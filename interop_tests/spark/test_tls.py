"""Reading and writing where the server is spoken to over TLS: whom we trust, and who trusts us."""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from interop_tests.keys import Authority
from magnetar import Standalone, standalone
from magnetar.spark_connector import options as source
from magnetar.spark_connector.admin_client import AdminClient
from magnetar.spark_connector.errors import RefusedError, ServiceError
from magnetar.spark_connector.planning import planner
from magnetar.spark_connector.progress import CursorListener
from magnetar.spark_connector.reading.range_reader import batches
from magnetar.spark_connector.security import QuerySecurity
from magnetar.spark_connector.stream import MicroBatches
from magnetar.spark_connector.writing import options as sink
from magnetar.spark_connector.writing.commits import commit
from magnetar.spark_connector.writing.connection import BrokerConnection
from magnetar.spark_connector.writing.service import TaskPlace
from magnetar.spark_connector.writing.tasks import write
from magnetar.wire.kafka.messages.basics import MetadataRequest

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.standalone


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"), "theirs")


@pytest.fixture(scope="module")
def secure(authority) -> Iterator[Standalone]:
    certificate, key = authority.issue("server")
    with standalone(tls_certificate=certificate, tls_key=key, bookie_port=0) as server:
        yield server


@pytest.fixture(scope="module")
def asking(authority) -> Iterator[Standalone]:
    """A server that wants to see its clients' certificates."""
    certificate, key = authority.issue("asking")
    files = {"tls_certificate": certificate, "tls_key": key}
    with standalone(**files, tls_client_ca=authority.certificate) as server:
        yield server


def given(server: Standalone, topic: str, **security: str) -> dict[str, str]:
    return {"service.url": server.https_url, "topic": topic, **security}


def send(options: dict[str, str], *values: str, delivery: str = "at_least_once") -> None:
    chosen = sink.parse({**options, "delivery": delivery}, stream=True)
    place = TaskPlace(f"s-{options['topic']}", "q", 0, 0)
    written = write([pa.record_batch({"value": list(values)})], chosen, place)
    assert written.rows == len(values)
    commit(chosen, place, [written])


def received(options: dict[str, str], **more: str) -> list[bytes]:
    chosen = source.parse({**options, "columns": "value", **more})
    tasks = planner.batch(chosen, 1)
    return [row["value"] for task in tasks for one in batches(task) for row in one.to_pylist()]


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once", "dedup"])
def test_rows_are_written_and_read_over_tls(secure, authority, topic, delivery) -> None:
    options = given(secure, topic, tlsTrustCertsFilePath=authority.certificate)
    send(options, "a", "b" * 100_000, delivery=delivery)
    assert received(options) == [b"a", b"b" * 100_000]
    assert received(options, readFrom="gateway") == [b"a", b"b" * 100_000]


def test_a_certificate_that_is_not_trusted(secure, stranger, topic) -> None:
    for security in ({}, {"tlsTrustCertsFilePath": stranger.certificate}):
        options = given(secure, topic, **security)
        for act in (lambda: send(options, "a"), lambda: received(options)):  # noqa: B023
            with pytest.raises(RefusedError) as raised:
                act()
            said = f"{secure.https_url}: its certificate is not trusted: "
            assert str(raised.value).startswith(said)
            assert '"tlsTrustCertsFilePath" names' in str(raised.value)


def test_any_certificate_will_do_if_it_is_said(secure, topic) -> None:
    options = given(secure, topic, tlsAllowInsecureConnection="true")
    send(options, "a")
    assert received(options) == [b"a"]


def test_a_server_by_another_name(authority, topic) -> None:
    certificate, key = authority.issue("elsewhere", "elsewhere", "192.0.2.1")
    with standalone(tls_certificate=certificate, tls_key=key, bookie_port=0) as server:
        options = given(server, topic, tlsTrustCertsFilePath=authority.certificate)
        with pytest.raises(RefusedError, match="IP address mismatch"):
            send(options, "a")
        options["tlsHostnameVerificationEnable"] = "false"
        send(options, "a")
        assert received(options) == [b"a"]


def test_we_show_a_certificate(asking, authority, topic) -> None:
    trust = {"tlsTrustCertsFilePath": authority.certificate}
    certificate, key = authority.issue("spark")
    shown = {"tlsCertificateFilePath": certificate, "tlsKeyFilePath": key}
    options = given(asking, topic, **trust, **shown)
    send(options, "a")
    assert received(options, readFrom="gateway") == [b"a"]


def test_we_show_none_where_one_is_asked_for(asking, authority, topic) -> None:
    options = given(asking, topic, tlsTrustCertsFilePath=authority.certificate)
    why = r'certificate required.* \("tlsCertificateFilePath" is the one to show'
    with pytest.raises(RefusedError, match=why):
        received(options)
    host, _, port = asking.bootstrap_servers_tls.rpartition(":")
    context = QuerySecurity(authority.certificate).context()
    with pytest.raises(RefusedError, match="certificate required"):
        BrokerConnection((host, int(port)), 10, context).ask(MetadataRequest(topics=[]))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("reset", [False, True])
def test_one_that_hangs_up_may_ask_for_a_certificate(authority, reset) -> None:
    """However that is seen: it depends on what of the handshake is on its way."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        hangs_up = threading.Thread(target=_hangs_up, args=(listening, reset))
        hangs_up.start()
        url = "https://{}:{}".format(*listening.getsockname())
        client = AdminClient([url], 10, QuerySecurity(authority.certificate))
        try:
            with pytest.raises(ServiceError, match='"tlsCertificateFilePath" is the one to show'):
                client.reply("GET", "/", None)
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            hangs_up.join()


def _hangs_up(listening: socket.socket, reset: bool) -> None:
    """On each that connects, until nobody can."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.recv(1 << 16)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_broker_that_is_not_trusted(secure, stranger) -> None:
    """The Kafka port, whose connection is another one."""
    host, _, port = secure.bootstrap_servers_tls.rpartition(":")
    with pytest.raises(RefusedError, match=f"{host}:{port}: its certificate is not trusted"):
        BrokerConnection((host, int(port)), 10, QuerySecurity(stranger.certificate).context())


def test_a_broker_that_speaks_no_tls(secure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answers = threading.Thread(target=_answers_in_the_clear, args=(listening,))
        answers.start()
        with pytest.raises(RefusedError, match=r"no TLS with it: \[SSL: WRONG_VERSION_NUMBER\]"):
            BrokerConnection(listening.getsockname(), 10, ssl.create_default_context())
        answers.join()


def _answers_in_the_clear(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection, suppress(ConnectionResetError):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        while connection.recv(1 << 16):
            pass


def test_a_listener_moves_cursors_over_tls(secure, authority, topic) -> None:
    trust = {"tlsTrustCertsFilePath": authority.certificate}
    options = given(secure, topic, **trust)
    send(options, "a")
    end = json.dumps(MicroBatches(source.parse(options, stream=True)).newest())
    progress = SimpleNamespace(name="", sources=[SimpleNamespace(endOffset=end)])
    listener = CursorListener(secure.https_url, "cursor", **trust)
    listener.onQueryProgress(SimpleNamespace(progress=progress))
    url = f"{secure.http_url}/admin/v2/persistent/public/default/{topic}/subscriptions"
    with urlopen(url) as answer:
        assert json.load(answer) == ["cursor"]


@pytest.mark.spark
def test_spark_over_tls(spark, secure, authority, topic) -> None:
    options = given(secure, topic, tlsTrustCertsFilePath=authority.certificate)
    rows = spark.range(100).selectExpr("CAST(id AS STRING) value")
    rows.write.format("magnetar").options(**options).mode("append").save()
    assert spark.read.format("magnetar").options(**options).load().count() == 100
