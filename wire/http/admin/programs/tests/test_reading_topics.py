"""The second version of the answer: the same facts, as rows."""

import msgspec

from magnetar.core.ledger.read.reading_plan import Place
from magnetar.spark_connector.service import _Topics
from magnetar.wire.http.tests.visitor import Visitor

TOPICS = "/admin/v2/reading/topics"
BASE = "persistent://public/default/p"


async def answers(visitor: Visitor, *topics: str) -> tuple[dict, dict]:
    """Both versions."""
    both = []
    for path in (TOPICS, f"{TOPICS}?version=2"):
        response = await visitor.ask("POST", path, {"topics": topics})
        assert response.status_code == 200, response.text
        both.append(response.json())
    return both[0], both[1]


async def test_partitions_come_in_their_order(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 3)
    places = await visitor.publish(f"{BASE}-partition-1", [b"a", b"b"])
    named, rows = await answers(visitor, "p", "nobody")
    assert rows["partitions"] == named["partitions"] == {BASE: 3}
    assert rows["missing"] == named["missing"] == ["persistent://public/default/nobody"]
    assert rows["logs"]["persistent://public/default/nobody"] == [None]
    ledger = places[0][0]
    first, stable, end, ledgers, aborted = rows["logs"][BASE][1]
    assert (first, stable, end) == ([ledger, 0, 0], [ledger, 2, 2], [ledger, 2, 2])
    assert [one[:3] for one in ledgers] == [[ledger, 0, 2]]
    assert aborted == []
    assert rows["logs"][BASE][0] == rows["logs"][BASE][2] == [[-1, 0, 0]] * 3 + [[], []]


async def test_a_topic_that_is_named_twice_is_there_once(visitor: Visitor) -> None:
    await visitor.publish("persistent://public/default/t", [b"a"])
    _, rows = await answers(visitor, "t", "public/default/t")
    assert list(map(len, rows["logs"].values())) == [1]


async def test_topics_that_are_not_loaded_are_loaded(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    await visitor.publish(f"{BASE}-partition-1", [b"a"])
    _, before = await answers(visitor, "p")
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p-partition-1/unload")
    assert f"{BASE}-partition-1" not in visitor.broker.topics
    _, after = await answers(visitor, "p")
    assert after["logs"][BASE][1][2][2] == before["logs"][BASE][1][2][2] == 1


async def test_a_connector_understands_both(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    places = await visitor.publish(f"{BASE}-partition-1", [b"a"])
    await visitor.publish("persistent://public/default/t", [b"b"])
    for answer in await answers(visitor, "p", "t", "nobody"):
        plans = msgspec.convert(answer, _Topics).checked()
        assert list(plans) == [f"{BASE}-partition-{i}" for i in range(2)] + [
            "persistent://public/default/t"
        ]
        plan = plans[f"{BASE}-partition-1"]
        assert plan.end == Place(places[0][0], 1, 1)
        assert [one.id for one in plan.ledgers] == [places[0][0]]
        assert plan.ledgers[0].open


async def test_queries_see_what_is_stored_before_them(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 3)
    for each in range(3):
        await visitor.publish(f"{BASE}-partition-{each}", [b"a"])
    path, body = "/admin/v2/reading/topics?version=2", {"topics": ["p"]}
    for number in range(1, 4):
        answer = (await visitor.ask("POST", path, body)).json()["logs"][BASE]
        assert [row[2][2] for row in answer] == [1, 1, number]
        await visitor.publish(f"{BASE}-partition-2", [b"b"])
    text = (await visitor.ask("GET", "/metrics")).text
    (line,) = [one for one in text.splitlines() if one.startswith("magnetar_kept_rows_bytes ")]
    assert float(line.split()[1]) > 100


async def test_names_of_a_namespace(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 3)
    await visitor.publish("persistent://public/default/t", [b"a"])
    answer = await visitor.ask("GET", "/admin/v2/reading/names/public/default")
    assert answer.json() == {BASE: 3, "persistent://public/default/t": 0}
    await visitor.fails(404, "GET", "/admin/v2/reading/names/public/nowhere")


async def test_topics_with_too_many_partitions_are_left_for_later(visitor: Visitor) -> None:
    for name, partitions in (("p", 6_000), ("q", 6_000), ("r", 1)):
        path = f"/admin/v2/persistent/public/default/{name}/partitions"
        await visitor.does("PUT", path, partitions)
    body = {"topics": ["p", "q", "r"]}
    refusal = await visitor.ask("POST", f"{TOPICS}?version=3", body)
    assert refusal.status_code == 400
    answer = (await visitor.ask("POST", f"{TOPICS}?version=4", body)).json()
    assert answer["partitions"] == {BASE: 6_000}
    assert answer["later"] == [f"persistent://public/default/{name}" for name in "qr"]
    answer = (await visitor.ask("POST", f"{TOPICS}?version=4", {"topics": answer["later"]})).json()
    assert list(answer["logs"]) == [f"persistent://public/default/{name}" for name in "qr"]
    assert answer["later"] == []
