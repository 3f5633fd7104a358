"""What operators set: how long messages stay, how many may wait, who may come.

Each test has a server of its own that looks after its topics all the time. What happens behind the
scenes is waited for by asking, never by time alone.
"""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition, MessageId

from interop_tests.pulsar.python.stock import numbered, readable, refused
from interop_tests.waiting import until
from magnetar import standalone
from magnetar.wire.pulsar.tests import peer

RECEIVE_MS = 15_000
OFTEN = {"housekeeping_interval_seconds": 0.05}
SMALL_LEDGERS = {"max_entries": 10, "min_rollover_minutes": 0}


@pytest.fixture
def serve(connect):
    """Starts a server with settings of the broker and of its ledgers; returns it and a client."""
    servers = []

    def start(ledgers=None, **broker):
        server = standalone(broker={**OFTEN, **broker}, ledgers=ledgers or {})
        servers.append(server)
        server.__enter__()
        return server, connect(server.pulsar_url)

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def publish(client, topic, bodies, **options):
    producer = client.create_producer(topic, batching_enabled=False, **options)
    for body in bodies:
        producer.send_async(body, None)
    producer.flush()
    producer.close()


def publish_slowly(client, topic, bodies):
    """One by one: a burst goes into one ledger, however small ledgers are to be."""
    producer = client.create_producer(topic, batching_enabled=False)
    for body in bodies:
        producer.send(body)
    producer.close()


def waiting(raw, server, topic):
    """How far the subscription `s` is behind: (its mark-delete position, the last position)."""
    with raw(server) as one:
        requested = one.introduce().ask(peer.subscribe(1, 1, topic, "s"))
        assert requested.kind == "SUCCESS"
        answer = one.ask(peer.get_last_message_id(2, 1)).body
        # an answered close: whoever subscribes next finds the place free
        assert one.ask(peer.close_consumer(3, 1)).kind == "SUCCESS"
    mark, last = answer.consumer_mark_delete_position, answer.last_message_id
    return signed(mark), signed(last)


def signed(position):
    """Before the first is -1, which the protocol's numbers are too proud to say."""
    pair = (position.ledger_id, position.entry_id)
    return tuple(number - 2**64 if number >= 2**63 else number for number in pair)


# -- how long messages stay ----------------------------------------------------------------------


def test_time_to_live(serve, raw, topic):
    server, client = serve(ttl_duration_default_seconds=1)
    client.subscribe(topic, "s").close()
    publish(client, topic, numbered(10))

    def expired():
        mark, last = waiting(raw, server, topic)
        return mark >= last

    until(expired)
    consumer = client.subscribe(topic, "s")
    publish(client, topic, [b"young"])
    assert consumer.receive(RECEIVE_MS).data() == b"young"


def test_acknowledged_messages_go(serve, topic):
    """Whole ledgers at a time; what is left is in the one that is written to."""
    _, client = serve(SMALL_LEDGERS)
    consumer = client.subscribe(topic, "s")
    publish_slowly(client, topic, numbered(95))
    for _ in range(95):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    consumer.close()
    until(lambda: len(readable(client, topic)) <= 10)


def test_unacknowledged_messages_stay(serve, topic):
    _, client = serve(SMALL_LEDGERS)
    one, two = (client.subscribe(topic, name) for name in ("one", "two"))
    publish_slowly(client, topic, numbered(95))
    for number in range(95):
        one.acknowledge(one.receive(RECEIVE_MS))
        message = two.receive(RECEIVE_MS)
        if number < 50:
            two.acknowledge(message)
    one.close()
    two.close()
    found = until(lambda: (left := readable(client, topic)) and len(left) <= 50 and left)
    assert found[-45:] == numbered(95)[50:]


def test_retention_keeps_what_is_acknowledged(serve, raw, topic, topics):
    """Another topic tells that the rounds were made in which messages would have gone."""
    server, client = serve(
        SMALL_LEDGERS,
        default_retention_time_minutes=-1,
        default_retention_size_mb=-1,
        ttl_duration_default_seconds=1,
    )
    consumer = client.subscribe(topic, "s")
    publish_slowly(client, topic, numbered(95))
    for _ in range(95):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    consumer.close()
    other = topics()
    client.subscribe(other, "s").close()
    publish(client, other, [b"expires"])
    until(lambda: waiting(raw, server, other)[0] >= waiting(raw, server, other)[1])
    assert readable(client, topic) == numbered(95)


def test_retention_by_size(serve, topic):
    _, client = serve(SMALL_LEDGERS, default_retention_time_minutes=-1, default_retention_size_mb=1)
    consumer = client.subscribe(topic, "s")
    publish_slowly(client, topic, [bytes(20_000)] * 200)
    for _ in range(200):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    consumer.close()
    until(lambda: len(readable(client, topic)) <= 65)
    assert len(readable(client, topic)) >= 45


def test_topics_that_nobody_uses_go(serve, raw, topic):
    server, client = serve(delete_inactive_topics_max_inactive_duration_seconds=0)
    used = f"{topic}-used"
    client.subscribe(used, "s")
    publish(client, topic, [b"x"])

    def gone():
        with raw(server) as one:
            requested = one.introduce().ask(peer.topics_of_namespace(1, "public/default"))
            return list(requested.body.topics) == [f"persistent://public/default/{used}"]

    until(gone)


def test_topics_do_not_go_under_whoever_comes(serve, topic):
    """Attached to at the very moment they are found idle; clients would not try a second time."""
    _, client = serve(
        housekeeping_interval_seconds=0.001, delete_inactive_topics_max_inactive_duration_seconds=0
    )

    def come(at):
        client.create_producer(f"{topic}-{at}").close()
        client.subscribe(f"{topic}-{at}", "s")

    with ThreadPoolExecutor(6) as together:
        list(together.map(come, range(30)))


# -- how many may wait ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("producer_exception", pulsar.ProducerBlockedQuotaExceededException),
        ("producer_request_hold", pulsar.ProducerBlockedQuotaExceededError),
    ],
)
def test_backlog_quota_refuses_producers(serve, topic, policy, error):
    """Until consumers have caught up."""
    _, client = serve(
        backlog_quota_default_limit_bytes=100_000, backlog_quota_default_retention_policy=policy
    )
    consumer = client.subscribe(topic, "s")
    publish(client, topic, [bytes(10_000)] * 20)
    until(lambda: refused(client, topic, error))
    for _ in range(20):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    until(lambda: not refused(client, topic, error))


@pytest.mark.java
def test_backlog_quota_as_java_hears_of_it(serve, java, topic):
    server, client = serve(
        backlog_quota_default_limit_bytes=100_000,
        backlog_quota_default_retention_policy="producer_exception",
    )
    consumer = client.subscribe(topic, "s")
    publish(client, topic, [bytes(10_000)] * 20)

    def received():
        """It tries again until its patience, in seconds, is over."""
        return java.play("access.create", server.pulsar_url, topic, patience=2)

    until(lambda: received() == "ProducerBlockedQuotaExceededException")
    for _ in range(20):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    until(lambda: received() == "none")


@pytest.mark.java
def test_time_to_live_as_java_hears_of_it(serve, java, raw, topic):
    """What has expired is read by nobody; a message sent after it is."""
    server, _ = serve(ttl_duration_default_seconds=1)
    playing = java.start("read.expired", server.pulsar_url, topic)
    playing.wait_for("published")
    until(lambda: waiting(raw, server, topic)[0] >= waiting(raw, server, topic)[1])
    playing.tell("expired")
    assert playing.result() == []


@pytest.mark.java
def test_retention_as_java_hears_of_it(serve, java, topic):
    """Readers find what is acknowledged and retained."""
    server, _ = serve(default_retention_time_minutes=-1, default_retention_size_mb=-1)
    numbers = [str(number) for number in range(20)]
    assert java.play("read.retained", server.pulsar_url, topic) == numbers


def test_backlog_quota_evicts(serve, raw, topic):
    """The oldest go, the newest stay."""
    server, client = serve(
        backlog_quota_default_limit_bytes=200_000,
        backlog_quota_default_retention_policy="consumer_backlog_eviction",
    )
    client.subscribe(topic, "s").close()
    publish(client, topic, [bytes(10_000) + b"%d" % number for number in range(60)])
    until(lambda: waiting(raw, server, topic)[0][1] >= 30)
    consumer = client.subscribe(topic, "s")
    found = []
    while not found or found[-1] != 59:
        found.append(int(consumer.receive(RECEIVE_MS).data()[10_000:]))
    assert found == list(range(found[0], 60))
    assert len(found) >= 10


def test_backlog_quota_by_age(serve, topic):
    _, client = serve(
        backlog_quota_default_limit_seconds=1,
        backlog_quota_default_retention_policy="producer_exception",
    )
    client.subscribe(topic, "s").close()
    publish(client, topic, [b"old"])
    until(lambda: refused(client, topic))


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared], ids=str)
def test_unacknowledged_messages_have_a_limit(serve, topic, kind):
    """A consumer that acknowledges nothing gets no more; when half is acknowledged, it does."""
    _, client = serve(max_unacked_messages_per_consumer=10)
    consumer = client.subscribe(topic, "s", kind, receiver_queue_size=1)
    publish(client, topic, numbered(30))
    first = [consumer.receive(RECEIVE_MS) for _ in range(10)]
    assert [message.data() for message in first] == numbered(10)
    with pytest.raises(pulsar.Timeout):
        consumer.receive(300)
    for message in first:
        consumer.acknowledge(message)
    assert [consumer.receive(RECEIVE_MS).data() for _ in range(10)] == numbered(20)[10:]


# -- who may come --------------------------------------------------------------------------------


def test_no_topics_by_asking(serve, topic):
    _, client = serve(allow_auto_topic_creation=False)
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(topic)
    with pytest.raises(pulsar.TopicNotFound):
        client.subscribe(topic, "s")


def test_no_subscriptions_by_asking(serve, connect, topic):
    server, client = serve(allow_auto_subscription_creation=False)
    client.create_producer(topic)
    # this client asks again until its time is over
    hasty = connect(server.pulsar_url, operation_timeout_seconds=1)
    with pytest.raises(pulsar.PulsarException):
        hasty.subscribe(topic, "s")
    client.create_reader(topic, MessageId.earliest)


def test_types_that_are_not_wanted(serve, topic):
    _, client = serve(subscription_types_enabled=["Exclusive", "Failover"])
    client.subscribe(topic, "a", ConsumerType.Failover)
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "b", ConsumerType.Shared)


def test_so_many_and_no_more(serve, topic):
    _, client = serve(
        max_producers_per_topic=2, max_consumers_per_subscription=2, max_subscriptions_per_topic=2
    )
    producers = [client.create_producer(topic) for _ in range(2)]
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic)
    producers[0].close()
    client.create_producer(topic)
    consumers = [client.subscribe(topic, "s", ConsumerType.Shared) for _ in range(2)]
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s", ConsumerType.Shared)
    consumers[0].close()
    client.subscribe(topic, "s", ConsumerType.Shared)
    client.subscribe(topic, "second")
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "third")


def test_largest_message_is_told_to_clients(serve, topic):
    _, client = serve(max_message_size=1024 * 1024)
    consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    with pytest.raises(pulsar.MessageTooBig):
        client.create_producer(topic).send(bytes(2 * 1024 * 1024))
    client.create_producer(topic, chunking_enabled=True).send(bytes(2 * 1024 * 1024))
    assert consumer.receive(RECEIVE_MS).data() == bytes(2 * 1024 * 1024)


# -- the same by REST, for one namespace -----------------------------------------------------------


@pytest.fixture
def namespace(serve, topic):
    """A server, a client, a fresh namespace, and how to set a policy of it."""
    server, client = serve(SMALL_LEDGERS)
    url = f"{server.http_url}/admin/v2/namespaces/public/{topic}"
    assert httpx.put(url, json={}).status_code == 204

    def decide(policy, value, **query):
        answer = httpx.post(f"{url}/{policy}", json=value, params=query)
        assert answer.status_code == 204, answer.text

    return server, client, f"public/{topic}/t", decide


def test_time_to_live_by_rest(namespace, raw):
    server, client, topic, decide = namespace
    client.subscribe(topic, "s").close()
    publish(client, topic, numbered(10))
    decide("messageTTL", 1)
    until(lambda: waiting(raw, server, topic)[0] >= waiting(raw, server, topic)[1])


def test_retention_by_rest(namespace):
    """First all is kept; when the policy changes, what is acknowledged goes."""
    _, client, topic, decide = namespace
    decide("retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    consumer = client.subscribe(topic, "s")
    publish_slowly(client, topic, numbered(95))
    for _ in range(95):
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
    consumer.close()
    assert readable(client, topic) == numbered(95)
    decide("retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
    until(lambda: len(readable(client, topic)) <= 10)


def test_backlog_quota_by_rest(namespace):
    _, client, topic, decide = namespace
    client.subscribe(topic, "s").close()
    publish(client, topic, [bytes(10_000)] * 20)
    quota = {"limitSize": 100_000, "policy": "producer_exception"}
    decide("backlogQuota", quota, backlogQuotaType="destination_storage")
    until(lambda: refused(client, topic))


def test_what_is_sent_again_is_stored_once(serve, topic):
    """Also over a restart of the client, which goes on where the server says it was."""
    server, client = serve()
    httpx.post(
        f"{server.http_url}/admin/v2/namespaces/public/default/deduplication", json=True
    ).raise_for_status()
    consumer = client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    producer = client.create_producer(topic, producer_name="p", batching_enabled=False)
    for sequence_id in (0, 1, 1, 0, 2):
        producer.send(b"%d" % sequence_id, sequence_id=sequence_id)
    assert producer.last_sequence_id() == 2
    producer.close()
    again = client.create_producer(topic, producer_name="p", batching_enabled=False)
    assert again.last_sequence_id() == 2
    again.send(b"2 again", sequence_id=2)
    again.send(b"3")
    assert [consumer.receive(RECEIVE_MS).data() for _ in range(4)] == [b"0", b"1", b"2", b"3"]


def persistence(rate: float) -> dict:
    quorums = dict.fromkeys(
        ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum"), 1
    )
    return {**quorums, "managedLedgerMaxMarkDeleteRate": rate}


def saved(server, topic) -> int:
    """How many times the position of the subscription `s` is in its ledger."""
    return internal(server, topic)["cursors"]["s"]["cursorLedgerLastEntry"] + 1


def internal(server, topic) -> dict:
    path = f"/admin/v2/persistent/public/default/{topic}/internalStats"
    return httpx.get(server.http_url + path).raise_for_status().json()


def test_how_often_a_position_is_stored(serve):
    """Of one topic at most each minute, of the other as often as it moves."""
    server, client = serve()
    for topic, rate in (("seldom", 0.01), ("often", 0)):
        httpx.put(f"{server.http_url}/admin/v2/persistent/public/default/{topic}")
        path = f"/admin/v2/persistent/public/default/{topic}/persistence"
        until(lambda path=path, rate=rate: httpx.post(  # once its policies are read
            server.http_url + path, json=persistence(rate)).status_code == 204)  # fmt: skip
    consumers = {name: client.subscribe(name, "s") for name in ("seldom", "often")}
    producers = {name: client.create_producer(name) for name in ("seldom", "often")}
    for turn in range(5):
        for name in ("seldom", "often"):
            producers[name].send(b"%d" % turn)
            consumers[name].acknowledge(consumers[name].receive(RECEIVE_MS))
        until(lambda turn=turn: saved(server, "often") > turn)
    assert saved(server, "seldom") == 1
