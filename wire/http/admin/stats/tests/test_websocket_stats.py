"""Which producers and consumers are WebSockets."""

from typing import Any

from magnetar.core.kernel.names import TopicName
from magnetar.core.topic.publishing.producer import Producer, ProducerRequest
from magnetar.core.topic.subscription.consumer import ConsumerRequest
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.http.admin.stats.tests.test_topic_stats import Sink
from magnetar.wire.http.admin.stats.websocket_stats import CLIENT_VERSION
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/proxy-stats"
SHARED = SubscriptionType.SHARED


async def attached(visitor: Visitor, name: str, address: str, version: str) -> Any:
    """A producer that has published two messages, and a consumer that has got one."""
    topic = await visitor.topic(name)
    request = ProducerRequest(f"p{address}", True, address=address, client_version=version)
    producer = Producer(1, request, Sink(), 1)
    await topic.attach_producer(producer)
    producer.messages_in = 2
    subscription = topic.subscriptions.get("s") or await topic.subscription("s")
    asked = ConsumerRequest(f"c{address}", address=address, client_version=version)
    topic.attach(subscription, 2, asked, SHARED, Sink()).messages_out = 1


async def test_websockets_and_nobody_else(visitor: Visitor) -> None:
    await attached(visitor, "a", "1.2.3.4:5", CLIENT_VERSION)
    await attached(visitor, "a", "1.2.3.4:6", "Pulsar-Java")
    await attached(visitor, "b", "1.2.3.4:7", "Pulsar-Java")
    expected = {
        "producerStats": [{"remoteConnection": "/1.2.3.4:5", "numberOfMsgPublished": 2}],
        "consumerStats": [
            {
                "remoteConnection": "/1.2.3.4:5",
                "subscriptionName": "s",
                "subscriptionType": "Shared",
                "subscriptionMode": "Durable",
                "numberOfMsgDelivered": 1,
            }
        ],
    }
    assert await visitor.get(f"{HERE}/stats") == {"persistent://public/default/a": expected}
    assert await visitor.get(f"{HERE}/persistent/public/default/a/stats") == expected
    await visitor.fails(404, "GET", f"{HERE}/persistent/public/default/b/stats")
    await visitor.fails(404, "GET", f"{HERE}/non-persistent/public/default/a/stats")
    await visitor.fails(405, "GET", f"{HERE}/metrics")


async def test_one_websocket_of_all_partitions(visitor: Visitor) -> None:
    await visitor.broker.catalog.create_partitioned(TopicName.parse("p"), 2)
    for index in range(2):
        await attached(visitor, f"p-partition-{index}", "1.2.3.4:5", CLIENT_VERSION)
    found = await visitor.get(f"{HERE}/persistent/public/default/p/stats")
    assert found["producerStats"] == [{"remoteConnection": "/1.2.3.4:5", "numberOfMsgPublished": 4}]
    assert [one["numberOfMsgDelivered"] for one in found["consumerStats"]] == [2]
    one = await visitor.get(f"{HERE}/persistent/public/default/p-partition-1/stats")
    assert one["producerStats"][0]["numberOfMsgPublished"] == 2
