"""What Apache's client for Go sees; the scenes are beside this, what must be seen is here."""

import httpx
import pytest

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]


def numbered(first, end):
    return [str(number) for number in range(first, end)]


def results(server, method, path, **more):
    answer = httpx.request(
        method, f"{server.http_url}/admin/v2/persistent/public/default/{path}", **more
    )
    assert answer.is_success, answer.text


# -- publishing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("codec", ["none", "lz4", "zlib", "zstd", "snappy"])
def test_thousands(play, codec, batched):
    assert play("publish.many", codec=codec, batched=batched) == [True, []]


@pytest.mark.parametrize("batched", [False, True])
def test_all_that_a_message_carries(play, topic, batched):
    assert play("publish.carries", batched=batched) == {
        "key": "the key",
        "ordering_key": "the order",
        "properties": {"one": "1", "zwei": "ü"},
        "event_time": 1_234_567,
        "producer": f"{topic}-sender",
        "topic": f"persistent://public/default/{topic}",
        "empty": True,
        "sequence": 41,
        "redelivered": 0,
    }


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_chunks(play, kind):
    assert play("publish.chunks", type=kind) == [2, []]


def test_delivered_later(play):
    assert play("publish.later") == [["now", "at", "late"], True]


def test_topic_without_storage(play):
    assert play("publish.volatile") == numbered(0, 5)


def test_exclusive_producers(play):
    error, early, bodies = play("publish.exclusive")
    assert "ProducerFenced" in error
    assert (early, bodies) == (0, ["0", "1"])


def test_a_topic_that_is_ended(pulsar_go, server, topic):
    scene = pulsar_go.start("publish.terminated", server.pulsar_url, topic)
    scene.wait_for("sent")
    results(server, "POST", f"{topic}/terminate", json={})
    scene.tell("ended")
    refused, again, bodies, rest = scene.result()
    # the client closes a producer that it has been told of, and fails what it has in flight then
    assert "TopicTerminated" in refused or "ProducerClosed" in refused
    assert "TopicTerminated" in again
    assert (bodies, rest) == (numbered(0, 3), [])


# -- subscribing ---------------------------------------------------------------------------------


def test_exclusive(play):
    error, bodies = play("subscribe.exclusive")
    assert "ConsumerBusy" in error
    assert bodies == ["0", "1"]


def test_shared(play):
    assert play("subscribe.shared") == [numbered(0, 20), []]


def test_failover(play):
    """It drops what is said of a consumer before it has noted that there is one."""
    assert play("subscribe.failover") == [
        ["active", "inactive"],
        numbered(0, 3),
        numbered(3, 6),
    ]


def test_keys_stay_together(play):
    assert play("subscribe.keyed") == [600, [], True]


def test_chosen_ranges(play):
    assert play("subscribe.sticky") == [40, True, True, True]


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "Key_Shared"])
def test_partitions(pulsar_go, server, topic, kind):
    results(server, "PUT", f"{topic}/partitions", json=3)
    scene = pulsar_go.start("subscribe.partitions", server.pulsar_url, topic, type=kind)
    scene.wait_for("read")
    results(server, "POST", f"{topic}/partitions", json=5)
    scene.tell("grown")
    assert scene.result() == [3, {"0": 10, "1": 10, "2": 10}, 5]


def test_topics_by_pattern(play):
    assert play("subscribe.pattern") == [["-a", "-b", "-c"], ["-a", "-b"]]


def test_queues(play):
    assert play("subscribe.queues") == [50, 50, 50]


# -- acknowledging -------------------------------------------------------------------------------


@pytest.mark.parametrize("receipt", [False, True])
@pytest.mark.parametrize("cumulative", [False, True])
def test_acknowledging(play, cumulative, receipt):
    left = ["7", "8", "9"] if cumulative else ["3", "6", "8", "9"]
    assert play("ack.each", cumulative=cumulative, receipt=receipt) == left


def test_parts_of_batches(play):
    assert play("ack.batch") == [10, ["1", "2", "5", "6", "7", "8"]]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", ["Shared", "Key_Shared"])
def test_negative_acknowledgements(play, kind, batched):
    assert play("ack.negative", type=kind, batched=batched) == [0, "1", 1, "1", 2, []]


def test_dead_letters(play, topic):
    body, deliveries, origin = play("ack.dead")
    assert (body, origin) == ("1", f"persistent://public/default/{topic}")
    assert deliveries == 1 + 3, "this client counts the first delivery too"


def test_retry_topics(play):
    assert play("ack.retry") == [["", "1", "2"], ["7"]]


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
def test_readers(play, batched):
    assert play("read.all", batched=batched) == [numbered(0, 10), False, ["9"], "10", ["10"]]


@pytest.mark.parametrize("batched", [False, True])
def test_readers_from_a_message(play, batched):
    assert play("read.from", batched=batched) == [numbered(6, 10), numbered(7, 10)]


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover"])
def test_seeking(play, kind, inclusive):
    """Whether the message that is sought comes is for this client to say, as for the others."""
    first = numbered(3 if inclusive else 4, 10)
    seen = play("read.seek", type=kind, inclusive=inclusive)
    assert seen == [first, numbered(5, 10), 10, [], True]


def test_table_view(play):
    assert play("read.table") == [2, "3", "2"]
