"""HTTP at the ports of other protocols, as a browser or a probe tries it."""

import httpx
import pytest


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("protocol", ["pulsar", "kafka"])
def test_http_is_told_where_http_is(server, protocol, method):
    where = server.pulsar_url.removeprefix("pulsar://")
    if protocol == "kafka":
        where = server.bootstrap_servers
    answer = httpx.request(method, f"http://{where}/admin/v2/tenants", content=b"x" * 10_000)
    assert answer.status_code == 400
    assert answer.json()["reason"] == f"this port does not speak HTTP: {server.http_url}/ does"
