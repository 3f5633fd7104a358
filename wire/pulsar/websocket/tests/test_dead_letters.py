"""What was delivered too often goes to another topic, and is acknowledged when it is stored."""

import trio
import trio.testing

from magnetar.wire.pulsar.session.conftest import Stage, published, stage
from magnetar.wire.pulsar.websocket.tests.talker import CONSUMER, READER, opened
from magnetar.wire.pulsar.websocket.tests.test_consuming import ack, backlog, first, payloads

__all__ = ["stage"]

TARGET = (
    f"{CONSUMER}?subscriptionType=Shared&subscriptionInitialPosition=Earliest"
    "&negativeAckRedeliveryDelay=0&maxRedeliverCount=1"
)


async def test_it_goes_there(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    await published(stage, b"bad", b"good")
    talker, heard = await first(stage, f"{TARGET}&receiverQueueSize=2")
    assert payloads(heard) == [b"bad", b"good"]
    await talker.say(ack(heard[1]))
    heard = await talker.say(ack(heard[0], "negativeAcknowledge"))
    assert (payloads(heard), heard[0]["redeliveryCount"]) == ([b"bad"], 1)
    assert await talker.say(ack(heard[0], "negativeAcknowledge")) == []
    assert backlog(stage) == 0
    dead = READER.replace("/t", "/t-s-DLQ") + "?messageId=earliest"
    _, heard = await first(stage, dead)
    assert payloads(heard) == [b"bad"]
    properties = heard[0]["properties"]
    assert properties["REAL_TOPIC"] == "persistent://public/default/t"
    assert properties["REAL_SUBSCRIPTION"] == "s"
    await published(stage, b"more")
    assert payloads(await talker.hear()) == [b"more"]


async def test_another_name(stage: Stage) -> None:
    await published(stage, b"bad")
    talker, heard = await first(stage, f"{TARGET}&deadLetterTopic=grave")
    for _ in range(2):
        heard = await talker.say(ack(heard[0], "negativeAcknowledge"))
    assert backlog(stage) == 0
    assert "persistent://public/default/grave" in stage.broker.topics
    assert await opened(stage, CONSUMER.replace("/s", "/other"))
