"""What Apache's Java client sees; the scenes are in src/, what must be seen is here."""

import httpx
import pytest

from interop_tests.keys import rsa_pair
from interop_tests.pulsar.java.driver import numbered
from interop_tests.waiting import until
from magnetar import standalone

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

TYPES = ["Exclusive", "Shared", "Failover", "Key_Shared"]


@pytest.fixture
def play(java, server, topic):
    """Plays one scene on the session's server with a fresh topic."""
    return lambda family, **args: java.play(family, server.pulsar_url, topic, **args)


# -- publishing ----------------------------------------------------------------------------------


def test_sync(play):
    seen = play("publish.sync")
    assert seen["bodies"] == numbered(0, 20)
    assert seen["ids"] == seen["sent"]


@pytest.mark.parametrize("batched", [False, True])
def test_async(play, batched):
    seen = play("publish.async", batched=batched, count=5_000)
    assert seen["rising"]
    assert seen["bodies"] == numbered(0, 5_000)


@pytest.mark.parametrize("batched", [False, True])
def test_all_that_a_message_carries(play, topic, batched):
    assert play("publish.carries", batched=batched) == {
        "key": "the key",
        "ordering_key": "the order",
        "properties": {"one": "1", "zwei": "ü"},
        "event_time": 1_234_567,
        "sequence": 41,
        "producer": f"{topic}-sender",
        "topic": f"persistent://public/default/{topic}",
        "bytes_key": True,
        "empty": True,
    }


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("codec", ["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"])
def test_compression(play, codec, batched):
    assert play("publish.compressed", codec=codec, batched=batched) is True


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_chunks(play, kind):
    """Two large messages whose chunks are mixed; of two consumers one gets all of each."""
    assert play("publish.chunks", type=kind) == {"whole": 2, "left": []}


@pytest.mark.parametrize("batched", [False, True])
def test_encryption(play, batched):
    seen = play("publish.encrypted", batched=batched, **rsa_pair())
    assert seen == numbered(0, 10)


def test_too_big(play):
    assert play("publish.too_big") == {"error": "InvalidMessageException", "left": []}


@pytest.mark.standalone
def test_largest_message(play):
    assert play("publish.largest") is True


def test_delivered_later(play):
    seen = play("publish.later")
    assert seen["bodies"] == ["now", "late"]
    assert seen["waited_ms"] >= 1_400


@pytest.mark.parametrize("avro", [False, True])
def test_records(play, avro):
    assert play("publish.records", avro=avro) == "7 lamp"


def test_null_is_not_empty(play):
    assert play("publish.nothing") == [True, False]


def test_topic_without_storage(play):
    assert play("publish.volatile") == numbered(0, 10)


# -- who may write -------------------------------------------------------------------------------


def test_exclusive_producer(play):
    assert play("access.exclusive") == "ProducerFencedException"


def test_waiting_in_line(play):
    seen = play("access.queue")
    assert seen["early"] == [0] * 4
    assert seen["bodies"][0] == "0"
    assert sorted(seen["bodies"]) == numbered(0, 5)


def test_fencing(java, server, topic):
    playing = java.start("access.fencing", server.pulsar_url, topic)
    stats = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/stats"
    playing.wait_for("one waits")
    until(lambda: httpx.get(stats).json()["waitingPublishers"] == 1)
    playing.tell("it is in line")
    seen = playing.result()
    assert seen["bodies"] == ["old", "new"]
    assert seen["waiting"] == "ProducerFencedException"
    assert seen["old"] in ("ProducerFencedException", "AlreadyClosedException")


# -- who gets what -------------------------------------------------------------------------------


def test_refusals(play):
    assert play("subscribe.busy") == ["ConsumerBusyException", "InvalidConfigurationException"]


def test_shared_spreads(play):
    seen = play("subscribe.spread")
    assert sorted(number for numbers in seen.values() for number in numbers) == list(range(300))
    assert set(seen) == {"a", "b", "c"}
    assert all(len(numbers) >= 50 for numbers in seen.values())


def test_failover(play):
    seen = play("subscribe.failover")
    active = seen["active"]
    other = {"a": "b", "b": "a"}[active]
    assert seen["before"] == {active: list(range(50))}
    assert seen["after"] == {other: list(range(50, 100))}
    assert seen["told"][-2:] == [active, other]


def check_keys(got, count, keys, names):
    assert all(len(owners) == 1 for owners in got["owners"].values())
    assert {owner for owners in got["owners"].values() for owner in owners} == names
    assert got["order"] == {f"key-{rest}": list(range(rest, count, keys)) for rest in range(keys)}


@pytest.mark.parametrize("batched", [False, True])
def test_key_shared(play, batched):
    """In batches too, if a batch has one key."""
    check_keys(play("subscribe.keys", batched=batched), 600, 60, {"a", "b", "c"})


def test_key_shared_sticky(play):
    seen = play("subscribe.sticky")
    assert seen["overlap"] == "ConsumerAssignException"
    check_keys(seen["got"], 200, 50, {"low", "high"})


def test_priority(play):
    seen = play("subscribe.priority")
    assert len(seen["first"]) == 10
    assert sorted(map(int, seen["first"] + seen["second"])) == list(range(30))
    assert seen["first"] == numbered(0, 10)


def test_list_of_topics(play, topic):
    assert sorted(play("subscribe.topics")) == [f"{topic}-{number}" for number in (1, 2, 3)]


def test_pattern(play):
    assert play("subscribe.pattern") == ["there", "later"]


@pytest.mark.parametrize("kind", TYPES)
def test_what_a_closed_consumer_held_comes_again(play, kind):
    seen = play("subscribe.leave", type=kind)
    assert sorted(seen["bodies"]) == [number for number in numbered(0, 10) if number != "3"]
    assert seen["left"] == []


def test_unsubscribe(play):
    seen = play("subscribe.unsubscribe")
    assert seen["refused"] != "none"
    assert seen["left"] == []


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_small_receiver_queues(play, kind, size):
    assert play("subscribe.queue", type=kind, size=size) == numbered(0, 50)


def test_pause(play):
    assert play("subscribe.pause") == numbered(0, 20)


def test_asked_for_before_it_comes(play):
    assert play("subscribe.async") == {"bodies": numbered(0, 100), "left": []}


def test_batch_receive(play):
    seen = play("subscribe.together")
    assert seen == {"got": [numbered(at, at + 10) for at in (0, 10, 20)], "left": []}


def test_names_and_properties(play):
    assert play("subscribe.properties") == {"name": "named", "left": []}


# -- acknowledging -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
@pytest.mark.parametrize("receipt", [False, True], ids=["no receipt", "receipt"])
def test_individual(play, kind, receipt):
    seen = play("acks.individual", type=kind, receipt=receipt)
    assert seen == {"again": [str(number) for number in range(0, 20, 3)], "left": []}


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
@pytest.mark.parametrize("receipt", [False, True], ids=["no receipt", "receipt"])
def test_indexes_of_a_batch(play, kind, receipt):
    seen = play("acks.individual", type=kind, receipt=receipt, batched=True, index=True)
    assert seen == {"again": [str(number) for number in range(0, 20, 3)], "left": []}


def test_a_batch_without_index_acks_comes_again_whole(play):
    seen = play("acks.individual", batched=True, expect=20)
    assert seen == {"again": numbered(0, 20), "left": []}


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("receipt", [False, True], ids=["no receipt", "receipt"])
def test_cumulative(play, batched, receipt):
    seen = play("acks.cumulative", batched=batched, index=batched, receipt=receipt)
    assert seen == {"again": numbered(13, 20), "left": []}


@pytest.mark.parametrize("batched", [False, True])
def test_negative(play, batched):
    seen = play("acks.negative", type="Shared", batched=batched, index=batched)
    assert sorted(seen["again"], key=int) == ["0", "4", "8", "12", "16"]
    assert set(seen["counts"]) == {1}
    assert seen["left"] == []


def test_negative_with_backoff(play):
    seen = play("acks.backoff", type="Shared")
    assert seen["counts"] == [0, 1, 2, 3]
    assert seen["pauses"][1] < seen["pauses"][2] < seen["pauses"][3]
    assert seen["pauses"][3] >= 600  # the third is 900 ms, by a coarse timer


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_ack_timeout(play, kind):
    seen = play("acks.timeout", type=kind)
    assert sorted(seen["again"]) == ["1", "2"]
    assert seen["left"] == []


def test_dead_letters(play, topic):
    seen = play("acks.dead", type="Shared")
    assert sorted(seen["bodies"]) == numbered(0, 5)
    assert seen["real"] == f"persistent://public/default/{topic}"
    assert seen["left"] == []


def test_retry_topic(play):
    seen = play("acks.retry")
    assert sorted(seen["times"]) == [f"{body} {time}" for body in range(3) for time in range(3)]
    assert sorted(seen["dead"]) == numbered(0, 3)
    assert seen["left"] == []


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_redeliver_all(play, kind):
    seen = play("acks.redeliver", type=kind)
    assert seen == {"again": numbered(15, 20), "left": []}


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])
def test_reader_from_an_id(play, batched, inclusive):
    first = 23 if inclusive else 24
    seen = play("read.from", batched=batched, inclusive=inclusive, start="23")
    assert seen == numbered(first, 50)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(("start", "first"), [("earliest", 0), ("latest", 50)])
def test_reader_from_an_end(play, batched, start, first):
    assert play("read.from", batched=batched, start=start) == numbered(first, 50)


def test_reader_with_a_small_queue(play):
    """Of one place it would not do: this client gives none back for the start that it skips."""
    assert play("read.from", start="9", queue=2) == numbered(10, 50)


def test_reader_from_a_time(play):
    assert play("read.time") == {"hour": numbered(0, 15), "since": numbered(10, 15)}


@pytest.mark.parametrize("batched", [False, True])
def test_reader_seeks(play, batched):
    assert play("read.seek", batched=batched) == {
        "all": numbered(0, 50),
        "some": numbered(34, 50),
        "none": [],
        "again": 50,
    }


def test_table_view(play):
    assert play("read.table") == {
        "before": {"k0": "27", "k1": "28", "k2": "29"},
        "told": "k1=new",
        "gone": "k2=gone",
        "size": 2,
    }


@pytest.mark.parametrize(("batched", "index"), [(False, -1), (True, 9)])
def test_last_message_id(play, batched, index):
    assert play("read.last", batched=batched) == {"same": True, "index": index}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])
def test_consumer_seeks(play, kind, batched, inclusive):
    seen = play("read.consumer_seek", type=kind, batched=batched, inclusive=inclusive)
    assert seen["all"] == 30
    assert sorted(seen["rest"]) == numbered(14 if inclusive else 15, 30)
    assert sorted(seen["since"]) == numbered(30, 35)
    assert seen["left"] == []


def test_empty_topic(play):
    assert play("read.empty") == [False, True]


# -- partitions ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def partitioned():
    """A server on which topics have four partitions."""
    broker = {"allow_auto_topic_creation_type": "partitioned", "default_num_partitions": 4}
    with standalone(broker=broker) as server:
        yield server


@pytest.fixture
def play_partitioned(java, partitioned, topic):
    """Plays one scene there."""
    return lambda family, **args: java.play(family, partitioned.pulsar_url, topic, **args)


def partitions_of(topic, count):
    return {f"persistent://public/default/{topic}-partition-{number}" for number in range(count)}


@pytest.mark.parametrize("kind", TYPES)
def test_partitions(play_partitioned, topic, kind):
    seen = play_partitioned("partitions.all", type=kind)
    assert set(seen["partitions"]) == partitions_of(topic, 4)
    assert set(seen["got"]) == partitions_of(topic, 4)
    assert all(numbers == sorted(numbers) for numbers in seen["got"].values())
    assert sorted(number for got in seen["got"].values() for number in got) == list(range(100))


def test_a_key_has_its_partition(play_partitioned):
    where = play_partitioned("partitions.keys")
    assert len(where) == 20
    assert {len(partitions) for partitions in where.values()} == {1}
    assert len({partition for partitions in where.values() for partition in partitions}) > 1


def test_one_partition(play_partitioned):
    (numbers,) = play_partitioned("partitions.single").values()
    assert numbers == list(range(50))


def test_failover_spreads_partitions(play_partitioned, topic):
    one, two = (set(names) for names in play_partitioned("partitions.spread"))
    assert (len(one), len(two)) == (2, 2)
    assert one | two == partitions_of(topic, 4)


def test_seek_all_partitions(play_partitioned):
    seen = play_partitioned("partitions.seek")
    assert seen["again"] == 40
    assert sorted(seen["since"]) == list(range(40, 60))


def test_reader_of_all_partitions(play_partitioned):
    assert sorted(play_partitioned("partitions.reader"), key=int) == numbered(0, 40)


# -- what the administration does meanwhile ------------------------------------------------------


def test_partitions_that_come_later(java, server, topic):
    """Producers and consumers that are there find them by themselves."""
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    assert httpx.put(url, json=2).status_code == 204
    playing = java.start("partitions.grown", server.pulsar_url, topic, partitions=5)
    playing.wait_for("consumed")
    assert httpx.post(url, json=5).status_code == 204
    playing.tell("grown")
    seen = playing.result()
    assert set(seen["before"]) == partitions_of(topic, 2)
    assert set(seen["after"]) == partitions_of(topic, 5)


def test_terminated(java, server, topic):
    """Producers and consumers are told that nothing more comes."""
    playing = java.start("subscribe.terminated", server.pulsar_url, topic)
    playing.wait_for("published")
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/terminate"
    assert httpx.post(url).status_code == 200
    playing.tell("terminated")
    seen = playing.result()
    assert seen["sending"] == "TopicTerminatedException"
    assert seen["creating"] == "TopicTerminatedException"
    assert (seen["ended"], seen["has"]) == ("ended", True)
