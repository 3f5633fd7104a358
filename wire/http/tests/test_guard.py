"""What a browser sends of its own, and what admin clients send."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.wire.http.guard import HostNames, foreign, form, headers_of
from magnetar.wire.http.tests.visitor import Visitor, visiting

CLEAR = "/admin/v2/namespaces/public/default/clearBacklog"
TOPIC = "/admin/v2/persistent/public/default/a"
LOCAL = HostNames(("mq.example.org", ".inside.example.net", "this-machine"))
NETWORK = HostNames(("mq.example.org",), single_labels=True)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "[::1]", "10.1.2.3:8080", "[fe80::1]:1"),
        *("localhost", "LocalHost:8080", "localhost.:80", "pulsar.localhost:8080"),
        *("mq.example.org", "MQ.example.org:8080", "this-machine:8080"),
        *("inside.example.net", "a.b.inside.example.net:8080"),
    ],
)
def test_names_of_ours(host: str) -> None:
    assert LOCAL.include(host)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"),
        *("", ":8080", "xmq.example.org", "mq.example.org.evil.example", "notinside.example.net"),
        *("magnetar", "[", "[evil]", "[::1", "[::1]evil.example", "127.0.0.1@evil.example", "a b"),
    ],
)
def test_names_of_others(host: str) -> None:
    assert not LOCAL.include(host)


def test_a_network_has_names_without_dots() -> None:
    assert NETWORK.include("magnetar:8080")
    assert not NETWORK.include("magnetar.evil.example:8080")
    assert not NETWORK.include("")


def test_any_name_where_the_operator_says_so() -> None:
    assert HostNames(("*",)).include("evil.example")


def said(text: str) -> dict[str, Any]:
    lines = (line.partition(": ") for line in text.splitlines())
    return dict(headers_of((name.encode(), value.encode()) for name, _, value in lines))


REBOUND = "Host: evil.example:8080\nOrigin: http://evil.example:8080\nSec-Fetch-Site: same-origin"
CHROME_FORM = (
    "Host: 127.0.0.1:8080\nOrigin: http://evil.example\nSec-Fetch-Site: cross-site\n"
    "Content-Type: application/x-www-form-urlencoded"
)
OTHER_PORT = "Host: localhost:8080\nOrigin: http://localhost:3000\nSec-Fetch-Site: same-site"
FILE = "Host: localhost:8080\nOrigin: null"
OLD_BROWSER = "Host: localhost:8080\nOrigin: http://evil.example"
NO_BODY = "Host: localhost:8080\nSec-Fetch-Site: cross-site"


@pytest.mark.parametrize("sent", [REBOUND, CHROME_FORM, OTHER_PORT, FILE, OLD_BROWSER, NO_BODY])
def test_writes_of_foreign_pages(sent: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert foreign(LOCAL, method, CLEAR, said(sent)) is not None


def test_reads_are_refused_under_foreign_names_only() -> None:
    assert foreign(LOCAL, "GET", "/metrics", said(REBOUND)) is not None
    assert foreign(LOCAL, "HEAD", "/metrics", said(REBOUND)) is not None
    assert foreign(LOCAL, "GET", "/", said(OTHER_PORT)) is None
    assert foreign(LOCAL, "GET", "/healthz", said(REBOUND)) is None
    # peeking creates a subscription, and an image of a foreign page is a GET
    image = said("Host: localhost:8080\nSec-Fetch-Site: cross-site\nSec-Fetch-Dest: image")
    assert foreign(LOCAL, "GET", f"{TOPIC}/subscription/s/position/1", image) is not None
    assert foreign(LOCAL, "POST", "/healthz", said(CHROME_FORM)) is not None


OWN_PAGE = "Host: localhost:8080\nOrigin: http://localhost:8080\nSec-Fetch-Site: same-origin"
BEHIND_TLS = "Host: mq.example.org\nOrigin: https://mq.example.org\nSec-Fetch-Site: same-origin"
PORT_OF_SCHEME = "Host: mq.example.org:443\nOrigin: https://mq.example.org"
JAVA = (
    "Host: 127.0.0.1:8080\nAccept: application/json\nUser-Agent: Pulsar-Java-v4.2.4\n"
    "Content-Type: application/json"
)
GO_WITHOUT_BODY = "Host: 127.0.0.1:8080\nAccept: application/json\nUser-Agent: \nContent-Length: 0"
CURL = "Host: 127.0.0.1:8080\nUser-Agent: curl/8.5\nAccept: */*"


@pytest.mark.parametrize(
    "sent", [OWN_PAGE, BEHIND_TLS, PORT_OF_SCHEME, JAVA, GO_WITHOUT_BODY, CURL]
)
def test_writes_of_our_own_pages_and_of_tools(sent: str) -> None:
    assert foreign(LOCAL, "POST", CLEAR, said(sent)) is None
    assert form("POST", said(sent)) is None


@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "Text/Plain;charset=UTF-8", "application/x-www-form-urlencoded"),
        "multipart/form-data; boundary=x",
    ],
)
def test_bodies_that_a_form_can_send(kind: str) -> None:
    assert form("POST", {"content-type": [kind]}) is not None
    assert form("POST", {"content-type": [kind], "x-requested-with": ["a tool"]}) is None
    for method in ("GET", "PUT", "DELETE"):  # Python's urllib calls whatever it sends a form
        assert form(method, {"content-type": [kind]}) is None


# -- in front of the application --------------------------------------------------------------


async def test_a_rebound_name_reads_nothing() -> None:
    async with visiting() as visitor:
        for path in ("/admin/v2/tenants", "/metrics", "/lookup/v2/topic/persistent/p/d/t"):
            answer = await visitor.ask("GET", path, headers={"host": "evil.example"})
            assert answer.status_code == 403
            assert "listen.http_allowed_hosts" in answer.json()["reason"]


async def test_a_form_writes_nothing(visitor: Visitor) -> None:
    for headers, status in (
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "text/plain", "origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ):
        answer = await visitor.ask("POST", CLEAR, b"{}", headers=headers)
        assert answer.status_code == status
        assert set(answer.json()) == {"reason"}
    await visitor.does("POST", CLEAR)
    await visitor.does("POST", CLEAR, {})


async def test_what_is_not_here_is_405_whatever_is_sent(visitor: Visitor) -> None:
    """`pulsar-admin sinks create` sends a form of several parts."""
    kind = {"content-type": "multipart/form-data; boundary=x"}
    answer = await visitor.ask("POST", "/admin/v3/sinks/public/default/s", b"--x--", headers=kind)
    assert answer.status_code == 405


async def test_no_preflight_is_granted(visitor: Visitor) -> None:
    requested = {
        "origin": "http://evil.example",
        "access-control-request-method": "PUT",
        "access-control-request-headers": "content-type",
    }
    answer = await visitor.ask("OPTIONS", "/admin/v2/tenants/t", headers=requested)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
