"""The topics to which a member of a classic group subscribes. Pure.

Separate from `protocols`, so that only its users import the messages.
"""

from __future__ import annotations

from magnetar.wire.kafka.groups.classic.consumer_protocol import CONSUMER, subscription_in
from magnetar.wire.kafka.groups.classic.member import ClassicMember


def subscribed_topics(member: ClassicMember) -> set[str] | None:
    """The topics that a consumer subscribes to; None if its metadata is unknown."""
    if member.request.protocol_type != CONSUMER:
        return None
    found: set[str] = set()
    for _, metadata in member.request.protocols:
        subscription = subscription_in(metadata)
        if subscription is None:
            return None
        found.update(subscription.topics)
    return found
