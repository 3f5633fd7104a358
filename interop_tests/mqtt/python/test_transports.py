"""paho over WebSocket and over TLS, and who may not connect."""

import socket
import subprocess

import pytest

from interop_tests.keys import Authority
from interop_tests.mqtt.test_mosquitto import SECONDS, tool
from magnetar import standalone
from magnetar.wire.mqtt.tests import peer


def websocket(url: str) -> str:
    """`host:port` of a URL of the server."""
    return url.split("://")[1].removesuffix("/mqtt")


SIZES = (0, 10, 1000, 100_000, 4_000_000)


def exchange(client, topic, qos=1, sizes=SIZES):
    client.connect()
    client.subscribe(topic, qos)
    for size in sizes:
        client.publish(topic, b"x" * size, qos)
    assert [len(one.payload) for one in client.take(len(sizes))] == list(sizes)


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_websocket(paho, server, topic, version, qos):
    """Bytes in their order, both ways [MQTT-4.2.0-1], [MQTT-7.1.1-1 of 3.1.1].

    paho forgets the rest of a packet that a socket does not take at once (2.1, `_packet_write`
    without `appendleft`), so there is none of megabytes.
    """
    address = websocket(server.mqtt_ws_url)
    client = paho(topic, version, address, transport="websockets")
    exchange(client, topic, qos, SIZES[:-1])


@pytest.mark.parametrize("transport", ["tcp", "websockets"])
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_tls(paho, secure, authority, topic, transport, version, qos):
    url = secure.mqtt_tls_url if transport == "tcp" else secure.mqtt_wss_url
    client = paho(topic, version, websocket(url), transport=transport)
    client.client.tls_set(authority.certificate)
    exchange(client, topic, qos, SIZES if transport == "tcp" else SIZES[:-1])


def test_a_stranger_is_not_trusted(secure, tmp_path, topic):
    host, _, port = websocket(secure.mqtt_tls_url).rpartition(":")
    theirs = Authority(tmp_path, "theirs").certificate
    words = ["-h", host, "-p", port, "--cafile", theirs, "-t", topic, "-m", "x"]
    done = subprocess.run([tool("mosquitto_pub"), *words], timeout=SECONDS, check=False,
                          capture_output=True)  # fmt: skip
    assert done.returncode != 0
    assert b"A TLS error occurred" in done.stderr


def test_mosquitto_over_tls(secure, authority, topic):
    host, _, port = websocket(secure.mqtt_tls_url).rpartition(":")
    words = ["-h", host, "-p", port, "--cafile", authority.certificate, "-t", topic, "-q", "2"]
    done = subprocess.run([tool("mosquitto_pub"), *words, "-m", "x", "-r"], timeout=SECONDS,
                          check=True, capture_output=True)  # fmt: skip
    assert done.stderr == b""
    done = subprocess.run([tool("mosquitto_sub"), *words, "-C", "1", "-W", "10"], timeout=SECONDS,
                          check=True, capture_output=True)  # fmt: skip
    assert done.stdout == b"x\n"


def test_clients_show_certificates(authority, tmp_path, topic):
    certificate, key = authority.issue("asking")
    own, own_key = authority.issue("device")
    with standalone(
        tls_certificate=certificate, tls_key=key, tls_client_ca=authority.certificate
    ) as server:
        host, _, port = websocket(server.mqtt_tls_url).rpartition(":")
        words = [tool("mosquitto_pub"), "-h", host, "-p", port, "--cafile", authority.certificate]
        words += ["-t", topic, "-m", "x", "-q", "1"]
        refused = subprocess.run(words, timeout=SECONDS, check=False, capture_output=True)
        assert refused.returncode != 0
        subprocess.run([*words, "--cert", own, "--key", own_key], timeout=SECONDS, check=True)


HEAD = (
    b"GET /mqtt HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\nOrigin: %s\r\n\r\n"
)


@pytest.mark.parametrize(
    ("origin", "status"),
    [(b"http://localhost:3000", b"101"), (b"https://evil.example", b"403"), (b"null", b"403")],
)
def test_pages_of_other_sites_may_not_connect(server, origin, status):
    host, _, port = websocket(server.mqtt_ws_url).rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS) as sock:
        sock.sendall(HEAD % (host.encode(), origin))
        assert sock.recv(1000).split(b" ")[1] == status


def test_a_page_that_is_named_may(topic):
    with standalone(mqtt={"websocket_origins": ["https://app.example"]}) as server:
        host, _, port = websocket(server.mqtt_ws_url).rpartition(":")
        with socket.create_connection((host, int(port)), SECONDS) as sock:
            sock.sendall(HEAD % (host.encode(), b"https://app.example"))
            assert sock.recv(1000).split(b" ")[1] == b"101"


def test_mqtt_without_http_at_the_port_for_websocket(server):
    host, _, port = websocket(server.mqtt_ws_url).rpartition(":")
    with socket.create_connection((host, int(port)), SECONDS) as sock:
        sock.sendall(peer.connect("c") + b"\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 400 ")
