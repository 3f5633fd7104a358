"""Words for tests with the Python client: publish so many, receive so many, nothing else comes.

Every wait is the client's own and has a deadline. That nothing else comes is shown by a message
sent after it, not by waiting.
"""

from collections.abc import Iterable

import pulsar

RECEIVE_MS = 15_000
DEADLINE_SECONDS = 20
"""For what happens behind the scenes, and is asked about until it has."""


def publish(producer: pulsar.Producer, bodies: Iterable[bytes]) -> list[pulsar.MessageId]:
    """Send all without waiting in between; the ids are in the order of the bodies."""
    bodies = list(bodies)
    found: dict[int, pulsar.MessageId] = {}
    for number, body in enumerate(bodies):

        def done(result: pulsar.Result, message_id: pulsar.MessageId, number: int = number) -> None:
            assert result == pulsar.Result.Ok, result
            found[number] = message_id

        producer.send_async(body, done)
    producer.flush()
    assert len(found) == len(bodies)
    return [found[number] for number in range(len(bodies))]


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def receive(consumer: pulsar.Consumer, count: int, ms: int = RECEIVE_MS) -> list[pulsar.Message]:
    return [consumer.receive(ms) for _ in range(count)]


def bodies(messages: Iterable[pulsar.Message]) -> list[bytes]:
    return [message.data() for message in messages]


def drain(consumer: pulsar.Consumer, count: int) -> list[bytes]:
    """Receive and acknowledge."""
    found = []
    for message in receive(consumer, count):
        found.append(message.data())
        consumer.acknowledge(message)
    return found


def readable(client: pulsar.Client, topic: str) -> list[bytes]:
    """All that a reader finds from the start."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(RECEIVE_MS).data())
    reader.close()
    return found


def refused(
    client: pulsar.Client,
    topic: str,
    error: type[pulsar.PulsarException] = pulsar.ProducerBlockedQuotaExceededException,
) -> bool:
    """Whether whoever wants to write there is turned away, with this error."""
    try:
        client.create_producer(topic).close()
    except error:
        return True
    return False


def only_then(consumer: pulsar.Consumer, producer: pulsar.Producer) -> None:
    """The next message of this consumer is one sent now: nothing else was waiting."""
    producer.send(b"the end")
    assert consumer.receive(RECEIVE_MS).data() == b"the end"
