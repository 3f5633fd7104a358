"""Members of the classic protocol in a group of the newer one (KIP-848, "online migration").

`groups/consumer/classic.py` decides the responses; this module looks up what it needs for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka.errors import INCONSISTENT_GROUP_PROTOCOL, KafkaRefusal
from magnetar.wire.kafka.groups.classic.member import Joined, Joining
from magnetar.wire.kafka.groups.consumer import classic
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup
from magnetar.wire.kafka.groups.consumer.heartbeat import Heartbeat
from magnetar.wire.kafka.groups.coordinator import new_id
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.session.groups.consumer import NAMES_MAX, looked

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.consumer.lookups import Lookups
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator

PROTOCOLS_MAX: Final = 16


async def join(
    groups: GroupCoordinator, lookups: Lookups, group: ConsumerGroup, request: Joining
) -> Joined | None:
    """Join the group; None if it ended meanwhile, and the caller has to look it up again."""
    subscription = classic.subscription_of(request)
    try:
        if (
            subscription is None
            or len(subscription.topics) > NAMES_MAX
            or len(request.names) > PROTOCOLS_MAX
        ):
            raise KafkaRefusal(INCONSISTENT_GROUP_PROTOCOL, "its subscription cannot be decoded")
        beat = Heartbeat(request.member_id, 0, names=frozenset(subscription.topics))
        if not await looked(groups, lookups, group, beat) or not group.in_use:
            return None
        joined = classic.join(group, request, subscription, new_id, groups.now())
        await groups.keep(group)
    except KafkaRefusal as error:
        return Joined(error_code=error.code, member_id=request.member_id)
    except BrokerError as error:
        return Joined(error_code=commit_code(error), member_id=request.member_id)
    return joined
