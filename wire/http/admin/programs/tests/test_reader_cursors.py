"""Cursors of readers of ledgers: they hold what is unread, and are nobody else's."""

import pytest

from magnetar.wire.http.admin.programs import reader_cursors
from magnetar.wire.http.tests.visitor import Visitor

CURSORS = "/admin/v2/reading/cursors"
TOPIC = "persistent://public/default/t"


def body(entry: tuple[int, int], name: str = "spark", topic: str = "t") -> dict:
    return {"subscription": name, "positions": {topic: entry}}


async def test_it_is_made_and_moves_forward_and_back(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    ledger = places[0][0]
    topic = await visitor.topic(TOPIC)
    for entry, backlog in ((1, 2), (3, 0), (2, 1), (0, 3), (0, 3)):
        response = await visitor.ask("POST", CURSORS, body((ledger, entry)))
        assert response.json() == {"missing": []}
        assert topic.subscriptions["spark"].cursor.backlog == backlog
    assert topic.subscriptions["spark"].cursor.properties == {"magnetar.cursor": "reader"}


async def test_it_outlives_the_topic_s_unloading(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    await visitor.ask("POST", CURSORS, body((places[0][0], 2)))
    await visitor.does("PUT", "/admin/v2/persistent/public/default/t/unload")
    topic = await visitor.topic(TOPIC)
    assert topic.subscriptions["spark"].cursor.backlog == 1


async def test_missing_topics_are_named(visitor: Visitor) -> None:
    response = await visitor.ask("POST", CURSORS, body((1, 1), topic="nobody"))
    assert response.json() == {"missing": ["persistent://public/default/nobody"]}


async def test_an_application_s_subscription_is_refused(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a"])
    await visitor.does("PUT", "/admin/v2/persistent/public/default/t/subscription/app")
    response = await visitor.ask("POST", CURSORS, body((places[0][0], 0), name="app"))
    assert response.status_code == 412
    assert "belongs to an application" in response.text


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"subscription": "", "positions": {}},
        {"subscription": "s", "positions": {"t": [1]}},
        {"subscription": "s", "positions": {"t": [1, 1], "u": [1, 1], "v": [1, 1]}},
    ],
)
async def test_bad_requests(visitor: Visitor, monkeypatch, wrong: dict) -> None:
    monkeypatch.setattr(reader_cursors, "CURSORS_MAX", 2)
    response = await visitor.ask("POST", CURSORS, wrong)
    assert response.status_code in (400, 412), response.text
    assert TOPIC not in visitor.broker.topics
