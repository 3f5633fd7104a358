"""The micro-batches of a stream, with a real server and without Spark: what would be stored, what
would be read, and what happens when Spark asks again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from magnetar.spark_connector import admin_client, options
from magnetar.spark_connector.errors import (
    ConnectorError,
    DataLossError,
    OptionError,
    RefusedError,
    ServiceError,
)
from magnetar.spark_connector.reading.range_reader import batches
from magnetar.spark_connector.service import ReadingService
from magnetar.spark_connector.stream import FRESH, MicroBatches

Offset = dict[str, Any]


class Query:
    """A stream as Spark runs it, batch by batch."""

    def __init__(self, server: Any, **given: str) -> None:
        self.given = {"service.url": server.http_url, **given}
        self.batches = MicroBatches(options.parse(self.given, stream=True))
        self.at: Offset = dict(FRESH)

    def restart(self) -> Query:
        """Another process that goes on from the checkpoint."""
        again = Query.__new__(Query)
        again.given = self.given
        again.batches = MicroBatches(options.parse(self.given, stream=True))
        again.at = json.loads(json.dumps(self.at))
        return again

    def planned(self, *, limited: bool = True) -> Offset:
        return self.batches.latest(self.at, limited=limited)

    def rows(self, end: Offset) -> list[bytes]:
        found = []
        for task in self.batches.tasks(self.at, end, 2):
            for batch in batches(task):
                found += batch.column("value").to_pylist()
        return found

    def batch(self) -> list[bytes] | None:
        """The next one; None if there is nothing to do."""
        end = self.planned()
        if json.dumps(end) == json.dumps(self.at):
            return None
        found = self.rows(end)
        self.at = end
        return found

    def everything(self) -> list[bytes]:
        found: list[bytes] = []
        while (rows := self.batch()) is not None:
            found += rows
        return found


@pytest.fixture
def send(lending, connect) -> Callable[..., None]:
    client = connect(lending.pulsar_url)
    producers: dict[str, Any] = {}

    def send(topic: str, *values: str, batch: int = 0) -> None:
        key = f"{topic} {batch}"
        if key not in producers:
            producers[key] = client.create_producer(
                topic,
                batching_enabled=batch > 0,
                batching_max_messages=max(batch, 2),
                batching_max_publish_delay_ms=10_000,
            )
        for value in values:
            producers[key].send_async(value.encode(), lambda *_: None)
        producers[key].flush()

    return send


def numbers(*bounds: int) -> list[str]:
    return [str(number) for number in range(*bounds)]


def encoded(values: list[str]) -> list[bytes]:
    return [value.encode() for value in values]


def test_latest_is_where_the_query_began(lending, send, topic) -> None:
    send(topic, "before")
    query = Query(lending, topic=topic)
    first = query.planned()
    send(topic, "between")
    assert query.planned()["init"] == first["init"], "asked twice, it means the same"
    # A crash before the first batch is done: Spark asks again from the fresh offset to this end.
    assert query.restart().rows(first) == []
    assert query.batch() == [b"between"]
    send(topic, "after")
    assert query.restart().batch() == [b"after"]


def test_the_first_batch_anchors_latest_though_it_is_empty(lending, send, topic) -> None:
    send(topic, "before")
    query = Query(lending, topic=topic)
    assert query.batch() == []
    assert query.batch() is None
    send(topic, "while the job is away")
    assert query.restart().batch() == [b"while the job is away"]


def test_batches_meet(lending, send, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest", maxRowsPerTrigger="7")
    send(topic, *numbers(20))
    send(topic, *numbers(20, 50), batch=10)
    sizes = []
    found: list[bytes] = []
    while (rows := query.batch()) is not None:
        sizes.append(len(rows))
        found += rows
        query = query.restart()
    assert found == encoded(numbers(50))
    assert sizes == [7, 7, 6, 10, 10, 10], "entries are read whole, and the limit is kept else"


def test_a_replay_reads_the_same(lending, send, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, *numbers(10))
    end = query.planned()
    send(topic, *numbers(10, 20))
    assert query.restart().rows(end) == query.rows(end) == encoded(numbers(10))


def test_the_server_is_asked_once_where_a_batch_is(lending, send, topic, monkeypatch) -> None:
    asked: list[Any] = []
    topics = ReadingService.topics

    def counted(service: ReadingService, names: Any) -> Any:
        asked.append(names)
        return topics(service, names)

    monkeypatch.setattr(ReadingService, "topics", counted)
    send(topic, "a", "b")
    query = Query(lending, topic=topic, startingOffsets="earliest")
    end = query.planned()
    assert query.rows(end) == [b"a", b"b"]
    assert query.batches.newest() == {"pos": end["pos"], "v": 1}
    assert len(asked) == 1
    assert query.rows(end) == [b"a", b"b"], "planned again, with what the server knows by then"
    assert len(asked) == 2


def test_a_server_that_knows_only_json(lending, send, topic, monkeypatch) -> None:
    """As older ones do: the answer says what it is."""
    send(topic, "a")
    service = ReadingService([lending.http_url], 30)
    plans = service.topics([f"persistent://public/default/{topic}"]).topics
    wanted = {log: [one.id for one in plan.ledgers] for log, plan in plans.items()}
    packed = service.ledgers(wanted)
    monkeypatch.setattr(admin_client, "HEADERS", {"Content-Type": "application/json"})
    assert service.ledgers(wanted) == packed
    assert [bytes(each[:8]) for each in packed.ledgers.values()] == [b"BookieMe"]


def test_equal_positions_are_equal_texts(lending, send, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, "a")
    assert query.batch() == [b"a"]
    assert json.dumps(query.planned()) == json.dumps(query.at)
    again = query.restart()
    assert json.dumps(again.planned()) == json.dumps(again.at)
    lending.restart()  # an idle roll-over is no news
    assert again.batch() is None
    send(topic, "b")
    assert again.batch() == [b"b"]


def test_what_is_there_now_and_no_more(lending, send, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest", maxRowsPerTrigger="3")
    send(topic, *numbers(8))
    query.batches.stop_where_it_ends_now()
    found: list[bytes] = []
    while (rows := query.batch()) is not None:
        found += rows
        send(topic, "later")
    assert found == encoded(numbers(8))


def test_fewer_rows_wait_for_others(lending, send, topic) -> None:
    query = Query(lending, topic=topic, minRowsPerTrigger="5")
    send(topic, "before")
    assert query.batch() == [], "the anchor"
    send(topic, *numbers(4))
    assert query.batch() is None
    send(topic, "4")
    assert query.batch() == encoded(numbers(5))
    impatient = Query(
        lending,
        topic=topic,
        startingOffsets="earliest",
        minRowsPerTrigger="50",
        maxTriggerDelayMs="0",
    )
    assert impatient.everything() == [b"before", *encoded(numbers(5))]


def test_a_budget_is_shared(lending, send, topics) -> None:
    busy, quiet = topics(), topics()
    send(busy, *numbers(90))
    send(quiet, *numbers(10))
    query = Query(
        lending, topics=f"{busy},{quiet}", startingOffsets="earliest", maxRowsPerTrigger="20"
    )
    end = query.planned()
    ends = {name.rpartition("/")[2]: place[2] for name, place in end["pos"].items()}
    assert ends == {busy: 18, quiet: 2}
    assert sorted(query.everything()) == sorted(encoded(numbers(90) + numbers(10)))


def test_bytes_are_limited(lending, send, topic) -> None:
    send(topic, *("x" * 1000 for _ in range(100)))
    query = Query(lending, topic=topic, startingOffsets="earliest", maxBytesPerTrigger="20k")
    sizes = []
    while (rows := query.batch()) is not None:
        sizes.append(len(rows))
    assert sum(sizes) == 100
    assert max(sizes) <= 20


def test_limits_count_from_an_entry(lending, send, topic) -> None:
    """A start without an offset; entries are batches here."""
    send(topic, *numbers(100), batch=10)
    (entry,) = ReadingService([lending.http_url], 30).positions({topic: 30}, {}).values()
    where = f'{{"{topic}": "{entry.ledger_id}:{entry.entry_id}"}}'
    for limit in ({"maxRowsPerTrigger": "20"}, {"maxBytesPerTrigger": "300"}):
        query = Query(lending, topic=topic, startingOffsets=where, **limit)
        sizes = []
        found: list[bytes] = []
        while (rows := query.batch()) is not None:
            sizes.append(len(rows))
            found += rows
        assert found == encoded(numbers(30, 100))
        assert max(sizes) <= 20


def test_topics_that_match_come_and_go(lending, send, topic) -> None:
    query = Query(lending, topicsPattern=f"{topic}-.*", startingOffsets="latest")
    send(f"{topic}-a", "before")
    assert query.batch() == []
    send(f"{topic}-a", "a")
    send(f"{topic}-b", "new ones are read from their beginning")
    send(f"other-{topic}-a", "is none of them")
    found = query.restart().batch()
    assert found == [b"a", b"new ones are read from their beginning"]


def test_a_time_to_begin(lending, send, topic) -> None:
    send(topic, "long ago")
    query = Query(lending, topic=topic, startingTimestamp=str(32_503_680_000_000))
    assert query.batch() == []
    since = Query(lending, topic=topic, startingTimestamp="0")
    assert since.batch() == [b"long ago"]


def test_deleted_and_made_again(lending, send, connect, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, *numbers(5))
    assert query.batch() == encoded(numbers(5))
    url = f"{lending.http_url}/admin/v2/persistent/public/default/{topic}?force=true"
    assert httpx.delete(url).status_code == 204
    with pytest.raises(DataLossError, match=f"{topic} has been deleted"):
        Query.planned(query.restart())
    connect(lending.pulsar_url).create_producer(topic).send(b"0")
    with pytest.raises(DataLossError, match="deleted and made again: it ends at offset 1"):
        query.restart().planned()
    query.given["failOnDataLoss"] = "false"
    assert query.restart().batch() == [b"0"]


@pytest.mark.parametrize("option", ["topics", "topicsPattern"])
def test_what_is_deleted_leaves_the_offset(lending, send, connect, topics, caplog, option) -> None:
    """It is told once; and one that comes later under the name is read from its beginning."""
    gone, stays = topics(), topics()
    client = connect(lending.pulsar_url)
    producer = client.create_producer(gone)
    for number in numbers(5):
        producer.send(number.encode())
    producer.close()  # it would come back, and with it the topic
    send(stays, "a")
    named = f"{gone},{stays}" if option == "topics" else f"{gone}|{stays}"
    query = Query(lending, startingOffsets="earliest", **{option: named})
    assert sorted(query.batch()) == [*encoded(numbers(5)), b"a"]
    url = f"{lending.http_url}/admin/v2/persistent/public/default/{gone}?force=true"
    assert httpx.delete(url).status_code == 204
    with pytest.raises(DataLossError, match=f"{gone} has been deleted"):
        query.planned()
    query.given["failOnDataLoss"] = "false"
    query = query.restart()
    assert query.batch() == [], "the batch that stores that it is gone"
    assert list(query.at["pos"]) == [f"persistent://public/default/{stays}"]
    assert query.batch() is None
    assert caplog.text.count(f"{gone} has been deleted") == 1
    query = query.restart()
    assert query.batch() is None
    producer = client.create_producer(gone)
    for number in numbers(10, 17):
        producer.send(number.encode())
    assert query.batch() == encoded(numbers(10, 17))
    assert query.restart().batch() is None


def test_made_again_with_as_many_messages(lending, send, connect, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, *numbers(5))
    assert query.batch() == encoded(numbers(5))
    url = f"{lending.http_url}/admin/v2/persistent/public/default/{topic}?force=true"
    assert httpx.delete(url).status_code == 204
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in numbers(10):
        producer.send(number.encode())
    with pytest.raises(DataLossError, match="deleted and made again"):
        query.restart().planned()
    query.given["failOnDataLoss"] = "false"
    assert query.restart().batch() == encoded(numbers(10))


def test_made_again_between_plan_and_read(lending, send, connect, topic) -> None:
    """Nothing of the first batch has been read: no offset tells the one topic from the other."""
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, *numbers(5))
    end = query.planned()
    url = f"{lending.http_url}/admin/v2/persistent/public/default/{topic}?force=true"
    assert httpx.delete(url).status_code == 204
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in numbers(100, 110):
        producer.send(number.encode())
    with pytest.raises(DataLossError, match="deleted and made again"):
        query.restart().rows(end)
    query.given["failOnDataLoss"] = "false"
    again = query.restart()
    assert again.rows(end) == []
    again.at = end
    assert again.batch() == encoded(numbers(100, 110))


@pytest.mark.parametrize("reads", ["bookies", "gateway"])
def test_the_server_restarts_between_plan_and_read(lending, send, topic, reads) -> None:
    """Once before the tasks of a batch are made, and once before they read."""
    query = Query(lending, topic=topic, startingOffsets="earliest", readFrom=reads)
    send(topic, *numbers(20))
    end = query.planned()
    lending.kill()
    lending.start()
    tasks = query.batches.tasks(query.at, end, 2)
    lending.kill()
    lending.start()
    found = [one for task in tasks for batch in batches(task) for one in batch.column("value")]
    assert [value.as_py() for value in found] == encoded(numbers(20))


def test_a_pattern_that_matches_nothing_yet(lending, send, topic) -> None:
    query = Query(lending, topicsPattern=f"{topic}-.*")
    assert query.batch() == []
    assert query.batch() is None
    send(f"{topic}-a", "first")
    assert query.restart().batch() == [b"first"]


def test_positions_of_what_is_not_read_are_a_mistake(lending, send, topic) -> None:
    send(topic, "a")
    query = Query(lending, topic=topic, startingOffsets=f'{{"{topic}x": 0}}')
    with pytest.raises(OptionError, match=f"{topic}x, which is not read"):
        query.planned()


def test_a_refusal_ends_the_query(lending, topic) -> None:
    name = f"non-persistent://public/default/{topic}"
    httpx.put(f"{lending.http_url}/admin/v2/non-persistent/public/default/{topic}")
    with pytest.raises(RefusedError, match="is not persistent"):
        Query(lending, topic=name).planned()


@pytest.mark.usefixtures("hurried")
def test_a_drain_does_not_end_while_nobody_answers(lending, send, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, "a")
    query.batches.stop_where_it_ends_now()
    lending.stop()
    with pytest.raises(ServiceError):
        query.planned()
    lending.start()
    assert query.batch() == [b"a"]


def test_a_topic_that_never_was_is_a_mistake(lending, topic) -> None:
    with pytest.raises(OptionError, match=f"there is no topic persistent://public/default/{topic}"):
        Query(lending, topic=topic).planned()


@pytest.mark.parametrize("option", ["topics", "topicsPattern"])
def test_a_checkpoint_of_another_topic(lending, send, topics, option) -> None:
    before, now = topics(), topics()
    send(before, "before")
    send(now, "now")
    query = Query(lending, topic=before, startingOffsets="earliest")
    query.batch()
    del query.given["topic"]
    query.given[option] = now
    with pytest.raises(
        DataLossError, match=f"default/{before} is in the checkpoint, and not among"
    ):
        query.restart().planned()
    query.given["failOnDataLoss"] = "false"
    assert query.restart().batch() == [b"now"], "as new topics are read, from their beginning"


@pytest.mark.parametrize("ends", ["trimmed", "deleted"])
def test_a_drain_ends_though_what_it_was_to_read_is_gone(lending, send, topic, ends) -> None:
    """With live writes, too."""
    query = Query(
        lending,
        topic=topic,
        startingOffsets="earliest",
        maxRowsPerTrigger="2",
        failOnDataLoss="false",
    )
    send(topic, *numbers(6))
    query.batches.stop_where_it_ends_now()
    assert query.batch() == encoded(numbers(2))
    admin = f"{lending.http_url}/admin/v2/persistent/public/default/{topic}"
    if ends == "trimmed":
        lending.restart()  # which begins another ledger with the next message
        send(topic, "later")
        assert httpx.post(f"{admin}/trim").status_code == 204
    else:
        assert httpx.delete(f"{admin}?force=true").status_code == 204
    assert query.everything() == []


def test_a_checkpoint_of_something_else(lending, send, topic) -> None:
    send(topic, "a")
    query = Query(lending, topic=topic)
    query.at = {"topic": {"0": 17}}
    with pytest.raises(ConnectorError, match="an offset of another source"):
        query.planned()
    query.at = {"v": 9}
    with pytest.raises(ConnectorError, match="of version 9, not 1"):
        query.planned()


@pytest.mark.usefixtures("hurried")
def test_a_server_that_is_away_is_asked_again(lending, send, topic) -> None:
    query = Query(lending, topic=topic, startingOffsets="earliest")
    send(topic, "a")
    lending.stop()
    assert query.batch() is None
    lending.start()
    assert query.batch() == [b"a"]


def test_workers_import_no_loop() -> None:
    here = "magnetar.spark_connector"
    code = f"import sys, {here}.stream, {here}.reading.range_reader; print('trio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_subscription_follows_the_query(lending, send, topic) -> None:
    """From the first plan on, so that nothing is deleted unread; back, too, with a checkpoint."""
    name = f"{topic}-spark"

    def backlog() -> int:
        stats = httpx.get(f"{lending.http_url}/admin/v2/persistent/public/default/{topic}/stats")
        return stats.json()["subscriptions"][name]["msgBacklog"]

    send(topic, *numbers(6))
    query = Query(
        lending, topic=topic, subscription=name, startingOffsets="earliest", maxRowsPerTrigger="2"
    )
    query.planned()
    assert backlog() == 6
    assert query.batch() == encoded(numbers(2))
    kept = json.loads(json.dumps(query.at))
    query.batches.done(query.at)
    assert backlog() == 4
    query.everything()
    query.batches.done(query.at)
    assert backlog() == 0
    again = query.restart()
    again.at = kept
    again.planned()
    assert backlog() == 4


def test_a_subscription_of_an_application_is_refused(lending, connect, send, topic) -> None:
    connect(lending.pulsar_url).subscribe(topic, "theirs")
    send(topic, "a")
    with pytest.raises(RefusedError, match=r"subscription theirs .* belongs to an application"):
        Query(lending, topic=topic, subscription="theirs").planned()


def test_a_subscription_on_an_empty_topic(lending, connect, send, topic) -> None:
    connect(lending.pulsar_url).create_producer(topic)
    query = Query(lending, topic=topic, subscription="reader", startingOffsets="earliest")
    assert query.batch() == []
    send(topic, "a", "b")
    assert query.batch() == [b"a", b"b"]
    query.batches.done(query.at)
