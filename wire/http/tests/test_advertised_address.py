"""Clients are told addresses that they can reach."""

import pytest
from starlette.requests import Request

from magnetar.wire.http.advertised_address import as_reached
from magnetar.wire.http.guard import HostNames
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.tests.visitor import visiting

EVERYWHERE = HttpOptions(
    broker_url="pulsar://0.0.0.0:6650",
    broker_url_tls="pulsar+ssl://[::]:6651",
    http_url="http://0.0.0.0:8080",
    hosts=HostNames(("here",)),
)


def request(host: str | None, server: tuple[str, int] | None = ("10.0.0.7", 8080)) -> Request:
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    return Request({"type": "http", "headers": headers, "server": server})


@pytest.mark.parametrize(
    ("host", "shown_host"),
    [
        ("broker.example:80", "broker.example"),
        ("broker_1", "broker_1"),
        ("192.0.2.1:8080", "192.0.2.1"),
        ("[2001:db8::1]:8080", "[2001:db8::1]"),
        ("0.0.0.0:8080", "10.0.0.7"),
        ("[0::0]", "10.0.0.7"),
        ("[::1::]", "10.0.0.7"),
        ("", "10.0.0.7"),
        (None, "10.0.0.7"),
        ("a b", "10.0.0.7"),
        ("a/b:80", "10.0.0.7"),
        ("evil\\g<2>", "10.0.0.7"),
        ("x" * 300, "10.0.0.7"),
    ],
)
def test_the_host_of_the_request_is_told_if_it_makes_sense(
    host: str | None, shown_host: str
) -> None:
    options = as_reached(EVERYWHERE, request(host))
    assert options.broker_url == f"pulsar://{shown_host}:6650"
    assert options.broker_url_tls == f"pulsar+ssl://{shown_host}:6651"
    assert (options.http_url, options.http_url_tls) == (f"http://{shown_host}:8080", "")
    assert options.broker_id == f"{shown_host}:8080"


@pytest.mark.parametrize(
    ("ours", "shown_host"),
    [("2001:db8::7", "[2001:db8::7]"), ("::ffff:10.0.0.7", "10.0.0.7"), ("/a.socket", "0.0.0.0")],
)
def test_otherwise_the_address_it_came_to(ours: str, shown_host: str) -> None:
    options = as_reached(EVERYWHERE, request(None, (ours, 8080)))
    assert options.broker_url == f"pulsar://{shown_host}:6650"
    assert as_reached(EVERYWHERE, request(None, None)) is EVERYWHERE


def test_an_address_that_is_one_is_told_to_everybody() -> None:
    options = HttpOptions(broker_url="pulsar://broker.example:6650", http_url="http://[::1]:8080")
    assert as_reached(options, request("other")) is options


async def test_every_answer_that_tells_an_address() -> None:
    async with visiting(EVERYWHERE) as visitor:
        found = await visitor.get("/lookup/v2/topic/persistent/public/default/any")
        assert found == {
            "brokerUrl": "pulsar://here:6650",
            "brokerUrlTls": "pulsar+ssl://here:6651",
            "httpUrl": "http://here:8080",
            "httpUrlTls": "",
            "nativeUrl": "pulsar://here:6650",
        }
        assert await visitor.get("/admin/v2/brokers") == ["here:8080"]
        leader = await visitor.get("/admin/v2/brokers/leaderBroker")
        assert leader == {"brokerId": "here:8080", "serviceUrl": "http://here:8080"}
        report = await visitor.get("/admin/v2/broker-stats/load-report")
        assert report["pulsarServiceUrl"] == "pulsar://here:6650"
        await visitor.topic("t")
        stats = await visitor.get("/admin/v2/persistent/public/default/t/stats")
        assert stats["ownerBroker"] == "here:8080"
