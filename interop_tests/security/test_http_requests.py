"""HTTP: who asks, over a real connection, and the address of a topic for clients of HTTP."""

import httpx
import pulsar
import pytest

from .pulsar_people import NAMESPACE, Administrator, secured, token


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with secured(tmp_path_factory.mktemp("people"), open_metrics=True) as server:
        yield server


def test_who_asks(server):
    with httpx.Client(base_url=server.http_url) as http:
        for path in ("/", "/healthz", "/readyz", "/metrics", "/admin/v2/brokers/ready"):
            assert http.get(path).status_code == 200, path
        refused = http.get("/admin/v2/tenants")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert http.get("/admin/v2/tenants", auth=("bob", "wrong")).status_code == 401
        assert http.get("/admin/v2/tenants", auth=("bob", "builder")).status_code == 403
        forged = {"authorization": f"Bearer {token('root', secret=b'x' * 32)}"}
        assert http.get("/admin/v2/tenants", headers=forged).status_code == 401
        genuine = {"authorization": f"Bearer {token('root')}"}
        assert http.get("/admin/v2/tenants", headers=genuine).status_code == 200


def test_a_client_that_looks_topics_up_by_http(connect, server, topic):
    administrator = Administrator(server)
    administrator.grant("alice", "produce")
    alice = pulsar.AuthenticationToken(token("alice"))
    producer = connect(server.http_url, authentication=alice).create_producer(topic)
    producer.send(b"found")
    stranger = pulsar.AuthenticationToken(token("stranger"))
    with pytest.raises(pulsar.PulsarException):
        connect(
            server.http_url, authentication=stranger, operation_timeout_seconds=2
        ).create_producer(topic)
    administrator.http.close()


def test_secrets_are_not_shown(server):
    administrator = Administrator(server)
    shown = administrator.http.get("/admin/v2/brokers/configuration/runtime").text
    assert "secret of thirty-two" not in shown
    assert administrator.http.get(f"{NAMESPACE}/permissions").status_code == 200
    administrator.http.close()
