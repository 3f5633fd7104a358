"""A thousand devices come at once, each with a token that is signed with RSA."""

import selectors
import socket
import time

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from magnetar import standalone
from magnetar.wire.mqtt.tests import peer

DEVICES = 1_000
SECONDS_MAX = 2.0
"""It takes 0.3 s."""


@pytest.mark.timeout(120)
def test_a_thousand_tokens(tmp_path):
    private = rsa.generate_private_key(65537, 2048)
    public = tmp_path / "public.pem"
    public.write_bytes(
        private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    packets = []
    for number in range(DEVICES):
        token = jwt.encode({"sub": f"d{number}"}, private, "RS256").encode()
        packets.append(peer.connect(f"d{number}", username="x", password=token))
    security = {"token_public_key": str(public), "open_metrics": True}
    with standalone(security=security) as server, selectors.DefaultSelector() as selector:
        host, port = server.listeners["mqtt"].split(":")
        begun = time.monotonic()
        for packet in packets:
            connection = socket.create_connection((host, int(port)), timeout=20)
            connection.sendall(packet)
            selector.register(connection, selectors.EVENT_READ)
        connections = [key.fileobj for key in selector.get_map().values()]
        answered = 0
        while answered < DEVICES:
            for key, _ in selector.select(20):
                assert key.fileobj.recv(100)[:4] == b"\x20\x02\0\0"
                selector.unregister(key.fileobj)
                answered += 1
        took = time.monotonic() - begun
        metrics = httpx.get(f"{server.http_url}/metrics").text
        for connection in connections:
            connection.close()
    (pause,) = [
        float(line.split()[1])
        for line in metrics.splitlines()
        if line.startswith("magnetar_loop_pause_own_seconds_max ")
    ]
    print(f"{DEVICES} tokens in {took:.2f} s, the longest pause {1000 * pause:.1f} ms")
    assert took < SECONDS_MAX
    assert pause < 0.02
