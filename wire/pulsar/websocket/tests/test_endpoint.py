"""What a request is for, and what is refused before anything is done."""

import base64
from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar.websocket.endpoint import (
    Kind,
    RefusedRequest,
    WebSocketCredentials,
    WebSocketEndpoint,
    credentials_of,
    endpoint_of,
)


def asked(target: str, **headers: str) -> WebSocketEndpoint:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return endpoint_of(target, pairs, "standalone")


def test_the_paths() -> None:
    found = asked("/ws/v2/producer/persistent/a/b/t")
    assert (found.kind, found.topic.full) == (Kind.PRODUCER, "persistent://a/b/t")
    found = asked("/ws/v2/consumer/non-persistent/a/b/t/s?x=1&x=2&y=%20z")
    assert (found.kind, found.topic.full) == (Kind.CONSUMER, "non-persistent://a/b/t")
    assert (found.subscription, dict(found.query)) == ("s", {"x": "1", "y": " z"})
    found = asked("/ws/v2/reader/persistent/a/b/t%20u")
    assert (found.kind, found.topic.local) == (Kind.READER, "t u")


def test_the_paths_of_several_topics() -> None:
    found = asked("/ws/v3/consumer/s%2Fx?topics=t,a/b/u,persistent://public/default/t")
    assert [each.full for each in found.topics] == [
        "persistent://public/default/t",
        "persistent://a/b/u",
    ]
    assert (found.subscription, found.is_of_several, found.pattern) == ("s/x", True, "")
    found = asked("/ws/v3/consumer/s?topicsPattern=a/b/t.*")
    assert (found.pattern, str(found.topic.namespace)) == ("persistent://a/b/t.*", "a/b")


def test_a_cluster_is_dropped_from_the_paths_of_old() -> None:
    found = asked("/ws/consumer/persistent/a/standalone/b/t/s%2Fx")
    assert (found.topic.full, found.subscription) == ("persistent://a/b/t", "s/x")
    with pytest.raises(RefusedRequest) as refused:
        asked("/ws/producer/persistent/a/elsewhere/b/t")
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/ws/v2/other/persistent/a/b/t", 404),
        ("/ws/", 404),
        ("/ws/v2", 404),
        ("/ws/v2/", 404),
        ("/ws/v3/consumer", 404),
        ("/ws/v2/producer/persistent/a/b", 400),
        ("/ws/v2/consumer/persistent/a/b/t", 400),
        ("/ws/v2/consumer/persistent/a/b/t/", 400),
        ("/ws/v2/consumer/persistent/a/b/t/__compaction", 400),
        ("/ws/v2/producer/volatile/a/b/t", 400),
        ("/ws/v2/producer/persistent/a/b/c%2Fd", 400),
        ("/ws/v2/producer/persistent/a b/c/d", 400),
        ("/ws/v2/producer/persistent/a/b/t?" + "&".join("x=1" for _ in range(101)), 400),
        ("/ws/v2/producer/persistent/a/b/" + "t" * 5000, 400),
        ("/ws/v3/producer/s?topics=t", 404),
        ("/ws/v3/consumer/s", 400),
        ("/ws/v3/consumer/?topics=t", 400),
        ("/ws/v3/consumer/s?topics=t&topicsPattern=t", 400),
        ("/ws/v3/consumer/s?topics=t,a/b", 400),
        ("/ws/v3/consumer/s?topics=" + ",".join(map(str, range(1001))), 400),
        ("/ws/v3/consumer/s?topicsPattern=t.*&maxRedeliverCount=1", 400),
        *((f"/ws/v3/consumer/s?topicsPattern={each}", 400) for each in ("t(", "t[", "t%2B%2B")),
        ("/ws/v3/consumer/s?topicsPattern=" + "t" * 251, 400),
        ("/ws/v3/consumer/s?topicsPattern=%5Cp%7BL%7D%7B300%7Dt%7B999%7D", 400),
        ("/ws/v3/consumer/s?topicsPattern=a/b/%28ab%29%7B999%7D", 400),
        *((f"/ws/v2/reader/persistent/{each}", 400) for each in ("%ff/b/t", "a/%ff/t", "a/b/%ff")),
        ("/ws/v2/consumer/persistent/a/b/t/%ff", 400),
        ("/ws/v3/consumer/%ff?topics=t", 400),
        ("/ws/v3/consumer/s?topics=%ff", 400),
        ("/ws/v2/producer/persistent/a/b/t?producerName=%ff", 400),
    ],
)
def test_what_is_refused(target: str, status: int) -> None:
    with pytest.raises(RefusedRequest) as refused:
        asked(target)
    assert refused.value.status == status


STEPS = [
    "v2",
    "v3",
    "producer",
    "consumer",
    "reader",
    "persistent",
    "public",
    "standalone",
    "t",
    "%2F",
    "%ff",
    "..",
    "%00",
]
QUERIES = st.dictionaries(st.sampled_from(["topics", "topicsPattern", "token"]), st.text())
HEADERS = st.dictionaries(
    st.sampled_from(["authorization", "x-pulsar-auth-method-name"]),
    st.sampled_from(["Bearer", "Basic", "Basic ==", "", "other"]),
)


@given(st.lists(st.sampled_from(["", *STEPS])), QUERIES, HEADERS)
def test_any_request_is_for_something_or_refused(
    steps: list[str], query: dict[str, str], headers: dict[str, str]
) -> None:
    with suppress(RefusedRequest):
        asked(f"/ws/{'/'.join(steps)}?{urlencode(query)}", **headers)


def test_numbers_and_words() -> None:
    found = asked("/ws/v2/producer/persistent/a/b/t?n=7&bad=x&less=-2&word=b&long=" + "9" * 30)
    assert (found.number("n", 1), found.number("absent", 1)) == (7, 1)
    assert (found.choice("word", "ab", "a"), found.choice("absent", "ab", "a")) == ("b", "a")
    for name in ("bad", "less", "long"):
        with pytest.raises(RefusedRequest):
            found.number(name, 1)
    with pytest.raises(RefusedRequest):
        found.number("n", 1, most=6)
    with pytest.raises(RefusedRequest):
        found.choice("word", "xy", "x")


def test_who_it_is() -> None:
    def of(query: str = "", **headers: str) -> WebSocketCredentials:
        pairs = [(name.replace("_", "-").encode(), v.encode()) for name, v in headers.items()]
        return credentials_of(pairs, {"token": query} if query else {})

    assert of() == WebSocketCredentials("none", b"")
    assert of(authorization="Bearer abc") == WebSocketCredentials("token", b"abc")
    assert of("abc") == WebSocketCredentials("token", b"abc")
    assert of("abc", authorization="bearer xyz") == WebSocketCredentials("token", b"xyz")
    basic = base64.b64encode(b"me:secret").decode()
    assert of(authorization=f"Basic {basic}") == WebSocketCredentials("basic", b"me:secret")
    assert of(x_pulsar_auth_method_name="tls") == WebSocketCredentials("tls", b"")
    with pytest.raises(RefusedRequest) as refused:
        of(authorization="Basic a")
    assert refused.value.status == 401
