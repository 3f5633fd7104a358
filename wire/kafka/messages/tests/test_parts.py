"""Parts are kept apart only while several messages have them."""

import pytest

from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import FieldType, Message, fields_of
from magnetar.wire.kafka.messages import consumer_protocol, parts

SHARED = [
    each for each in vars(parts).values() if getattr(each, "__module__", "") == parts.__name__
]
MESSAGES = [
    *(side for api in APIS.values() for side in api),
    consumer_protocol.ConsumerSubscription,
    consumer_protocol.ConsumerAssignment,
]


def parts_of(message: type[Message]) -> set[type[Message]]:
    inner = {field.kind for field in fields_of(message) if not isinstance(field.kind, FieldType)}
    return inner.union(*(parts_of(each) for each in inner))


@pytest.mark.parametrize("part", SHARED)
def test_a_shared_part_is_shared(part):
    assert sum(part in parts_of(message) for message in MESSAGES) > 1
