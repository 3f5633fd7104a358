"""The server goes away and comes back in the middle of everything the Java client can do.

The scenes are in Returning.java. All are begun on one server, which then is stopped or killed and
started, once for all; then each is played to its end, with the producers and consumers that were
there before. This client has receipts for acknowledgements, so that is demanded which is promised.
"""

import httpx
import pytest

from interop_tests.keys import rsa_pair
from interop_tests.pulsar.java.driver import numbered
from magnetar import standalone

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(180)]


TWENTY = numbered(0, 20)
THIRDS = [str(number) for number in range(0, 20, 3)]
OWN = {"own": True}
CODECS = ["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]

EXPECTED = {
    "sync": ("again.sync", {}, TWENTY),
    "batches": ("again.batches", {}, TWENTY),
    **{codec: ("again.codec", {"codec": codec}, TWENTY) for codec in CODECS},
    "encryption": ("again.encryption", {}, TWENTY),
    "regex": ("again.regex", {}, {"before", "after", "later"}),
    "partitions": ("again.partitions", {}, set(numbered(0, 60))),
    "reader": ("again.reader", {}, TWENTY),
    "table": ("again.table", {}, {"a": "new", "b": "stays"}),
    "seek": ("again.seek", {}, {"by_id": numbered(12, 20), "by_time": TWENTY}),
    # each of its own client: one shuts its whole connection when a producer or consumer is closed
    # while it comes back, and an acknowledgement that waits for its receipt then fails
    "individual": ("again.individual", OWN, THIRDS),
    "individual shared": ("again.individual", {"type": "Shared"} | OWN, THIRDS),
    "indexes of a batch": ("again.individual", {"batched": True} | OWN, THIRDS),
    "indexes shared": ("again.individual", {"batched": True, "type": "Shared"} | OWN, THIRDS),
    "cumulative": ("again.cumulative", OWN, numbered(13, 20)),
    "cumulative in a batch": ("again.cumulative", {"batched": True} | OWN, numbered(13, 20)),
    "negative": ("again.negative", {}, set(numbered(0, 5))),
    "timeout": ("again.timeout", {}, {"0", "2"}),
    "dead": ("again.dead", {}, set(numbered(0, 3))),
    "retry": ("again.retry", {}, None),
    "exclusive": (
        "again.exclusive",
        {},
        {"other": "ProducerFencedException", "bodies": ["before", "after"]},
    ),
    "waiting": ("again.waiting", OWN, True),
    "fencing": ("again.fencing", {}, None),
    "counts": ("again.counts", {}, None),
    "topics": ("again.topics", {}, 6),
    "volatile": ("again.volatile", {}, ["before", "after"]),
    "delayed": ("again.delayed", {}, None),
    # begun last: under way when the server goes
    "chunks": ("again.chunks", {}, True),
    "in flight": ("again.in_flight", {}, numbered(0, 3_000)),
}


@pytest.fixture(scope="module", params=["killed", "stopped"])
def begun(request, java):
    """All scenes, played to their middle; meanwhile the server was away."""
    with standalone() as server:
        playing = {}
        for name, (family, args, _) in EXPECTED.items():
            topic = f"{request.param}-{name.replace(' ', '-')}"
            if name == "partitions":
                url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
                assert httpx.put(url, json=3).status_code == 204
            if name == "encryption":
                args = rsa_pair()
            playing[name] = java.start(family, server.pulsar_url, topic, **args)
        for each in playing.values():
            each.wait_for("midway")
        if request.param == "killed":
            server.kill()
        else:
            server.stop()
        server.start()
        for each in playing.values():
            each.tell("on")
        yield playing


@pytest.mark.parametrize("name", [name for name, each in EXPECTED.items() if each[2] is not None])
def test_goes_on(begun, name):
    seen, expected = begun[name].result(), EXPECTED[name][2]
    if isinstance(expected, set):
        seen = set(seen)
    elif "shared" in name:
        seen = sorted(seen, key=int)
    assert seen == expected


def test_retry(begun):
    seen = begun["retry"].result()
    assert set(seen["times"]) == {f"{body} {time}" for body in range(3) for time in range(3)}
    assert sorted(seen["dead"]) == numbered(0, 3)


def test_counts(begun):
    seen = begun["counts"].result()
    assert seen["before"] == [0, 1, 2]
    # the first of these may have lain in the client's queue before the server went
    second, third = seen["after"][1:]
    assert third == second + 1
    assert third <= 2


def test_fencing(begun):
    seen = begun["fencing"].result()
    assert seen["bodies"] == ["old", "new", "newer"]
    assert seen["old"] in ("ProducerFencedException", "AlreadyClosedException")


def test_delayed(begun):
    seen = begun["delayed"].result()
    assert seen["body"] == "late"
    assert seen["waited_ms"] >= 4_000  # a second is what the server may be early
