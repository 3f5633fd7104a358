"""What a topic's policies refuse: consumers, and messages one by one. Pure.

Only topics whose policies say so look at their messages (`Effective.checks_messages`): for those
that are too large, or to be delivered too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import ConsumerBusy, Invalid, NotAllowed
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import Effective
from magnetar.core.topic.subscription.consumer import Consumer

PROPERTIES_BYTES_MAX: Final = 64 * 1024
"""Properties of a producer, consumer or subscription are held in memory as long as that is."""


def check_properties(kind: str, properties: Mapping[str, str]) -> None:
    """Raise unless what a client says of itself (`kind`, for the text) is small enough to keep."""
    if sum(len(key) + len(value) for key, value in properties.items()) > PROPERTIES_BYTES_MAX:
        raise Invalid(f"the properties of a {kind} may have at most {PROPERTIES_BYTES_MAX} bytes")


class Occupied(Protocol):
    """A subscription, as counting sees it."""

    @property
    def consumers(self) -> Sequence[Consumer]: ...


def check_consumer(
    name: TopicName, policies: Effective, subscriptions: Iterable[Occupied], kind: str
) -> None:
    """Whether one more consumer, of a subscription of that type, may attach to the topic."""
    if policies.max_consumers_per_topic:
        present = sum(len(subscription.consumers) for subscription in subscriptions)
        if present >= policies.max_consumers_per_topic:
            raise ConsumerBusy("Topic reached max consumers limit")
    if kind not in policies.subscription_types:
        raise NotAllowed(f"subscriptions of type {kind} are not enabled here")


def check_subscriptions(name: TopicName, policies: Effective, present: int) -> None:
    """Whether the topic may have one more subscription."""
    if policies.max_subscriptions_per_topic and present >= policies.max_subscriptions_per_topic:
        raise NotAllowed(f"Exceed the maximum number of subscriptions of the topic: {name}")


def refused(payloads: Sequence[bytes], policies: Effective, now_ms: int) -> dict[int, NotAllowed]:
    """Why messages of a run may not be stored, by place."""
    found: dict[int, NotAllowed] = {}
    size_max = policies.max_message_size
    delay_max = policies.delayed_delivery.max_delivery_delay_in_millis
    for at, payload in enumerate(payloads):
        if size_max and len(payload) > size_max:
            found[at] = NotAllowed(f"Exceed maximum message size of {size_max} bytes")
        elif delay_max > 0 and (form_of(payload).deliver_at(payload) or 0) > now_ms + delay_max:
            found[at] = NotAllowed(
                f"Exceeds max allowed delivery delay of {delay_max} milliseconds"
            )
    return found
