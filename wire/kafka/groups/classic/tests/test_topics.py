"""What consumers hide in their bytes."""

import pytest

from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.groups.classic.consumer_protocol import BYTES_MAX
from magnetar.wire.kafka.groups.classic.member import ClassicMember, Joining
from magnetar.wire.kafka.groups.classic.topics import subscribed_topics
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerSubscription


def member(*metadata: bytes, kind: str = "consumer") -> ClassicMember:
    protocols = tuple((str(at), data) for at, data in enumerate(metadata))
    return ClassicMember("m", Joining("", None, "c", "/h", 1.0, 1.0, kind, protocols, False), 0.0)


def wants(*topics: str, version: int = 0, claims: int | None = None) -> bytes:
    encode = encoder(ConsumerSubscription, version, False)
    said = version if claims is None else claims
    return said.to_bytes(2, "big") + b"".join(encode(ConsumerSubscription(topics=list(topics))))


@pytest.mark.parametrize("version", range(4))
def test_each_version(version: int) -> None:
    assert subscribed_topics(member(wants("a", "b", version=version))) == {"a", "b"}


def test_all_protocols_and_versions_to_come() -> None:
    newer = wants("b", version=3, claims=9) + b"something more"
    assert subscribed_topics(member(wants("a"), newer)) == {"a", "b"}


@pytest.mark.parametrize(
    "metadata",
    [b"", b"\0", b"\xff\xff" + wants("a"), b"\0\0\x7f\xff\xff\xff", bytes(BYTES_MAX + 1)],
)
def test_words_that_nobody_knows(metadata: bytes) -> None:
    assert subscribed_topics(member(wants("a"), metadata)) is None


def test_others_say_other_things() -> None:
    assert subscribed_topics(member(wants("a"), kind="connect")) is None
