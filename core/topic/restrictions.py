"""Checks consumers, subscriptions and messages against a topic's policies. Pure.

Internal topics have this server's own state, such as the sessions of MQTT's clients. Everybody may
read them. Whatever else a protocol offers, for producers, subscriptions or administrators, is
refused: it would change the state, or lose it, and its service would never hear of that. A service
uses the parts of core that do not check (`PersistentTopic.publish`, the catalog).

Messages are checked only if a policy needs it (`Effective.checks_messages`): their size, and their
delay of delivery (PIP-315); in a topic with transactions also which one they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from magnetar.core.entry.form import MarkKind, TransactionKey, TransactionMark
from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import ConsumerBusy, Corrupted, Invalid, NotAllowed
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import Effective
from magnetar.core.topic.subscription.consumer import Consumer

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic

PROPERTIES_BYTES_MAX: Final = 64 * 1024
"""The limit for the properties of a producer, consumer or subscription, which stay in memory."""


def check_properties(kind: str, properties: Mapping[str, str]) -> None:
    """Raise if a client's properties are too large; `kind` is for the error's text."""
    if sum(len(key) + len(value) for key, value in properties.items()) > PROPERTIES_BYTES_MAX:
        raise Invalid(f"the properties of a {kind} may have at most {PROPERTIES_BYTES_MAX} bytes")


def check_changeable(name: TopicName) -> None:
    """Raise unless others than this server may change the topic and what it holds."""
    if name.internal:
        raise NotAllowed(f"{name} is internal: it can be read, and only this server changes it")


def check_owns_log(topic: PersistentTopic) -> None:
    """Raise if a topic shows the log of another, which alone changes it (`shadow_topic.py`)."""
    if topic.source is not None:
        raise NotAllowed(f"{topic.name} is a shadow topic: {topic.source.name} has its messages")


def check_log_changeable(topic: PersistentTopic) -> None:
    """Raise unless others than this server may change what the log of the topic holds."""
    check_changeable(topic.name)
    check_owns_log(topic)


class Occupied(Protocol):
    """A subscription whose consumers are counted."""

    @property
    def consumers(self) -> Sequence[Consumer]: ...


def check_consumer(
    name: TopicName, policies: Effective, subscriptions: Iterable[Occupied], kind: str
) -> None:
    """Raise unless one more consumer, of a subscription of that type, may attach."""
    if policies.max_consumers_per_topic:
        present = sum(len(subscription.consumers) for subscription in subscriptions)
        if present >= policies.max_consumers_per_topic:
            raise ConsumerBusy("Topic reached max consumers limit")
    if kind not in policies.subscription_types:
        raise NotAllowed(f"subscriptions of type {kind} are not enabled here")


def check_subscriptions(name: TopicName, policies: Effective, present: int) -> None:
    """Raise unless the topic may have one more subscription."""
    if policies.max_subscriptions_per_topic and present >= policies.max_subscriptions_per_topic:
        raise NotAllowed(f"Exceed the maximum number of subscriptions of the topic: {name}")


def refused(payloads: Sequence[bytes], policies: Effective, now_ms: int) -> dict[int, NotAllowed]:
    """The messages of a run that are refused, by place, with the reason."""
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


def strays(payloads: Sequence[bytes], key: TransactionKey | None) -> list[int]:
    """The places of messages that say something else of transactions than that they belong to this
    one, or to none. The log would be replayed by what they say.
    """
    expected = None if key is None else TransactionMark(key, MarkKind.PART)
    return [at for at, payload in enumerate(payloads) if _mark_of(payload) != expected]


def _mark_of(payload: bytes) -> TransactionMark | None:
    try:
        return form_of(payload).transaction_mark(payload)
    except Corrupted:
        return None
