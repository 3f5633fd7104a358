"""HTTP lookup."""

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.names import TopicName
from magnetar.wire.http.endpoints.lookup import BUNDLE
from magnetar.wire.http.tests.visitor import Visitor, visiting

HERE = "/lookup/v2/topic/persistent/public/default"


async def test_every_topic_is_here(visitor: Visitor) -> None:
    assert await visitor.get(f"{HERE}/any?authoritative=true") == {
        "brokerUrl": "pulsar://127.0.0.1:6650",
        "brokerUrlTls": "",
        "httpUrl": "http://127.0.0.1:8080",
        "httpUrlTls": "",
        "nativeUrl": "pulsar://127.0.0.1:6650",
    }
    assert (await visitor.ask("GET", f"{HERE}/any/bundle")).text == BUNDLE
    await visitor.get("/lookup/v2/topic/non-persistent/public/default/any")


async def test_what_cannot_be_looked_up(visitor: Visitor) -> None:
    await visitor.fails(404, "GET", "/lookup/v2/topic/persistent/public/missing/any")
    await visitor.fails(404, "GET", "/lookup/v2/topic/other/public/default/any")
    reason = await visitor.fails(404, "GET", f"{HERE}/any?listenerName=test")
    assert "the broker do not have test listener" in reason


async def test_a_peers_topic_is_looked_up_at_the_peer() -> None:
    peer = Peer(7, {"http": "b:8080", "pulsar": "b:6650"})
    table = OwnershipTable(peer)
    table.topics[TopicName.parse("theirs").full] = peer
    async with visiting(ownership=table) as visitor:
        response = await visitor.ask("GET", f"{HERE}/theirs?authoritative=true")
        assert response.status_code == 307
        assert response.headers["location"] == f"http://b:8080{HERE}/theirs?authoritative=true"
        assert (await visitor.get(f"{HERE}/ours"))["brokerUrl"] == "pulsar://127.0.0.1:6650"
        assert await visitor.get("/admin/v2/brokers") == ["127.0.0.1:8080", "b:8080"]
