"""What is known of a message in flight."""

from __future__ import annotations

from typing import Any

from magnetar.wire.mqtt.delivery.feed import MessagePlace
from magnetar.wire.mqtt.delivery.sent_messages import Sent, SentTogether


def test_messages_that_are_sent_together_have_consecutive_places() -> None:
    source: Any = object()
    together = SentTogether(source, (7, 3), range(5, 9))
    assert len(together) == 4
    assert together[1] == Sent(source, MessagePlace((7, 3), 6))
