"""What waits comes in order, and it is known whether produces wait alone."""

import random
from collections import deque

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.session.pending_requests import Pending
from magnetar.wire.kafka.wire import KafkaRequest


def requested(key: int) -> KafkaRequest:
    return KafkaRequest(key, 9, 0, "", None, 100)


def test_it_is_what_a_look_through_all_would_say() -> None:
    dice, pending, plain = random.Random(3), Pending(), deque[KafkaRequest]()
    seen = set()
    for _ in range(5_000):
        if plain and dice.random() < 0.5:
            assert pending.requests[0] is plain[0]
            assert pending.take() is plain.popleft()
        elif plain and dice.random() < 0.1:
            plain.appendleft(requested(ApiKey.METADATA))
            pending.put_back(plain[0])
        else:
            plain.append(requested(ApiKey.METADATA if dice.random() < 0.1 else ApiKey.PRODUCE))
            pending.add(plain[-1])
        if dice.random() < 0.01:
            pending.clear()
            plain.clear()
        assert len(pending.requests) == len(plain)
        alone = all(one.key == ApiKey.PRODUCE for one in plain)
        assert pending.only_produces is alone
        seen.add((bool(plain), alone))
    assert len(seen) == 3
