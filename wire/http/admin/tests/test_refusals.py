"""What the whole admin interface says to requests that make no sense: a status and a reason."""

from typing import Any

import pytest

from magnetar.wire.http.tests.visitor import Visitor

SPACE = "/admin/v2/namespaces/public/default"
TOPIC = "/admin/v2/persistent/public/default/a"
S = f"{TOPIC}/subscription/s"

NO_JSON = (
    *(b"{", b"\xff\xfe", b"NaN", b"1e400", b"[" * 5_000, b'{"a":' * 70 + b"1" + b"}" * 70),
    # not UTF-8, where msgspec does not look unless somebody wants the text
    *(b'"\xff"', b'{"a":"\xff"}', b'{"\xff":1}', b'["\xc3"]'),
    # halves of UTF-16's pairs
    *(b'"\\ud800"', b'{"a":"\\udc00\\ud800"}'),
)
TOO_LARGE = b"1" + b"0" * 30


@pytest.fixture
async def guest(visitor: Visitor) -> Visitor:
    """A visitor of a broker that has topic a with subscription s."""
    await (await visitor.topic("a")).subscription("s")
    return visitor


@pytest.mark.parametrize("body", [*NO_JSON, TOO_LARGE], ids=lambda body: body[:20].hex())
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/admin/v2/tenants/t"),
        ("PUT", "/admin/v2/clusters/c"),
        ("PUT", "/admin/v2/namespaces/public/n"),
        ("POST", f"{SPACE}/messageTTL"),
        ("POST", f"{SPACE}/retention"),
        ("POST", f"{SPACE}/persistence"),
        ("POST", f"{SPACE}/backlogQuota"),
        ("PUT", f"{TOPIC}/partitions"),
        ("PUT", f"{TOPIC}/properties"),
        ("POST", f"{TOPIC}/maxProducers"),
        ("POST", f"{S}/resetcursor"),
    ],
)
async def test_a_body_that_is_no_json_or_cannot_be_kept(
    guest: Visitor, method: str, path: str, body: bytes
) -> None:
    assert await guest.fails(400, method, path, body)


@pytest.mark.parametrize(
    ("status", "method", "path", "body"),
    [
        # of another type
        (400, "PUT", "/admin/v2/tenants/t", {"adminRoles": "me"}),
        (400, "PUT", "/admin/v2/clusters/c", {"serviceUrl": 5}),
        (400, "PUT", "/admin/v2/namespaces/public/n", {"auth_policies": {"namespace_auth": []}}),
        (400, "POST", f"{SPACE}/deduplication", "maybe"),
        (400, "POST", f"{SPACE}/maxProducersPerTopic", 1 << 31),
        (400, "POST", f"{TOPIC}/backlogQuota", {"policy": "other"}),
        (400, "POST", f"{TOPIC}/maxProducers?maxProducers=some", None),
        (400, "POST", f"{S}/skip/some", None),
        (400, "POST", f"{S}/skip/{'9' * 5_000}", None),
        (400, "POST", f"{S}/resetcursor", {"ledgerId": "x"}),
        (412, "POST", f"{S}/expireMessages/-1", None),
        (412, "POST", f"{S}/skip/-1", None),
        # of unknown names
        (404, "GET", "/admin/v2/tenants/nobody", None),
        (404, "GET", "/admin/v2/namespaces/nobody", None),
        (404, "PUT", "/admin/v2/namespaces/nobody/n", {}),
        (404, "PUT", "/admin/v2/persistent/nobody/n/a", None),
        (404, "GET", "/admin/v2/persistent/public/nothing", None),
        (404, "GET", "/admin/v2/nothing", None),
        (412, "PUT", "/admin/v2/tenants/t", {"allowedClusters": ["nowhere"]}),
        # of names that cannot be
        (412, "PUT", "/admin/v2/tenants/a%20b", {}),
        (412, "PUT", "/admin/v2/persistent/public/default/%FF", None),
        (400, "PUT", "/admin/v2/persistent/public/default/a-s__transaction_pending_ack", None),
        (
            400,
            "PUT",
            "/admin/v2/persistent/public/default/s__transaction_pending_ack/partitions",
            2,
        ),
        (400, "PUT", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign", None),
        # of no subscription
        (404, "GET", f"{TOPIC}/subscription/x/replicatedSubscriptionStatus", None),
        (404, "POST", f"{TOPIC}/subscription/x/replicatedSubscriptionStatus", False),
        # of what is there
        (409, "PUT", "/admin/v2/tenants/public", {"allowedClusters": ["standalone"]}),
        (409, "PUT", "/admin/v2/clusters/standalone", {}),
        (409, "PUT", SPACE, {}),
        (409, "PUT", TOPIC, None),
        (409, "PUT", f"{TOPIC}/partitions", 2),
        (409, "PUT", S, None),
        (409, "DELETE", "/admin/v2/tenants/public", None),
        (409, "DELETE", SPACE, None),
        # not so
        (405, "PATCH", TOPIC, None),
        (405, "POST", "/metrics", None),
        (405, "DELETE", "/admin/v2/brokers/version", None),
    ],
)
async def test_requests_that_are_refused(
    guest: Visitor, status: int, method: str, path: str, body: Any
) -> None:
    assert await guest.fails(status, method, path, body)


async def test_a_body_that_is_no_policy_is_not_called_one(guest: Visitor) -> None:
    for method, path, body in (
        ("PUT", "/admin/v2/tenants/t", {"adminRoles": "me"}),
        ("POST", f"{S}/resetcursor", {"ledgerId": "x"}),
        ("POST", "/admin/v2/schemas/public/default/a/schema", {"type": 5}),
    ):
        why = await guest.fails(400, method, path, body)
        assert why.startswith("the body is invalid: "), why


async def test_reasons_are_pulsars(guest: Visitor) -> None:
    body = {"allowedClusters": ["standalone"]}
    why = await guest.fails(409, "PUT", "/admin/v2/tenants/public", body)
    assert why == "Tenant already exists"
    why = await guest.fails(409, "PUT", "/admin/v2/clusters/standalone")
    assert why == "Cluster already exists"
    assert await guest.fails(409, "PUT", SPACE) == "Namespace already exists"
    assert await guest.fails(409, "PUT", TOPIC) == "This topic already exists"
    assert await guest.fails(409, "PUT", S) == "Subscription already exists for topic"


@pytest.mark.parametrize("query", ["?force=%FF", "?x=true&position=%C3", "?x=%ed%a0%80"])
async def test_a_query_that_is_no_text(guest: Visitor, query: str) -> None:
    await guest.fails(400, "DELETE", TOPIC + query)
    assert await guest.get(f"{TOPIC}/subscriptions") == ["s"]
