"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: the consumer group protocol of KIP-848.

A heartbeat with a subscription, or one long after the last lookup, looks up the group's topics
first. `groups/consumer/group.py` decides the response.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.patterns.patterns import BadPattern, compiled
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNSUPPORTED_ASSIGNOR,
    KafkaRefusal,
)
from magnetar.wire.kafka.groups.consumer.assignors import ASSIGNORS, TopicIdPartition
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup, ConsumerState
from magnetar.wire.kafka.groups.consumer.heartbeat import (
    JOIN,
    LEAVE_FOR_NOW,
    Heartbeat,
    HeartbeatResult,
    by_topic,
)
from magnetar.wire.kafka.groups.consumer.member import ConsumerMember
from magnetar.wire.kafka.groups.group_records import CONSUMER
from magnetar.wire.kafka.groups.offsets import commit_code
from magnetar.wire.kafka.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopicPartitions,
    HeartbeatAssignment,
    TopicIdPartitions,
)
from magnetar.wire.kafka.session.context import HiddenTopics
from magnetar.wire.kafka.session.groups.group_tools import described
from magnetar.wire.kafka.session.topics.brokers import ready

if TYPE_CHECKING:
    from magnetar.wire.kafka.groups.consumer.lookups import Lookups
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

OWN_ID_VERSION: Final = 1
"""From this version on members choose their own ids (KIP-1082)."""
LOOK_SECONDS: Final = 1.0
"""The least time between two lookups of a group's topics, unless a subscription changes."""
ENTER_TRIES_MAX: Final = 20
"""Tries to join a group whose protocol changes meanwhile."""
NAMES_MAX: Final = 10_000
OWNED_MAX: Final = 100_000
"""Topics and partitions in one heartbeat."""
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The member types of ConsumerGroupDescribe (KIP-1099)."""


class ConsumerGroupHandlers:
    """ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

    def __init__(self, groups: GroupCoordinator, lookups: Lookups, records: GroupRecords) -> None:
        self._groups = groups
        self._lookups = lookups
        self._records = records

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self.on_consumer_group_heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: self.on_consumer_group_describe,
        }

    async def on_consumer_group_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            _check(request, context.version)
            response = await self._beaten(context, request)
        except KafkaRefusal as error:
            response = HeartbeatResult(error.code, str(error), request.member_id)
        except BrokerError as error:
            response = HeartbeatResult(commit_code(error), str(error), request.member_id)
        held = None
        if response.assigned is not None:
            held = HeartbeatAssignment(
                topic_partitions=[
                    TopicIdPartitions(topic_id=topic, partitions=numbers)
                    for topic, numbers in by_topic(response.assigned).items()
                ]
            )
        return ConsumerGroupHeartbeatResponse(
            error_code=response.error_code,
            error_message=response.message or None,
            member_id=response.member_id,
            member_epoch=response.epoch,
            heartbeat_interval_ms=round(response.again_seconds * 1000),
            assignment=held,
        )

    async def _beaten(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> HeartbeatResult:
        groups, beat = self._groups, _beat(context, request)
        await groups.ready(request.group_id)
        if beat.epoch == JOIN:
            with groups.expecting(request.group_id):
                group = await self._entered(request.group_id, beat)
                beat = _with_hidden(context.caller, group, beat)
                response = group.heartbeat(beat, groups.now())
        else:
            group = self._lookup(request.group_id)
            await looked(self._groups, self._lookups, group, beat)
            beat = _with_hidden(context.caller, group, beat)
            response = group.heartbeat(beat, groups.now())
        if not groups.move_back(group):
            await groups.keep(group)
        return response

    def _lookup(self, group_id: str) -> ConsumerGroup:
        """The group of a heartbeat that is no join."""
        group = self._groups.consumer(group_id)
        if group is None:
            if self._groups.in_use(group_id):
                raise KafkaRefusal(GROUP_ID_NOT_FOUND, "the group is one of the older protocol")
            raise KafkaRefusal(UNKNOWN_MEMBER_ID, "the group has no members")
        return group

    async def _entered(self, group_id: str, beat: Heartbeat) -> ConsumerGroup:
        """The group for a new member, created if it does not exist, with its topics looked up.

        The group may change its protocol during the lookup, as members come and go; then this tries
        again. The new member is expected all that time, so that a group which has been upgraded for
        it is not downgraded.
        """
        groups = self._groups
        for _ in range(ENTER_TRIES_MAX):
            group = groups.consumer(group_id)
            if group is None:
                await self._made_ready(group_id, beat)
                group = groups.consumer(group_id)
                if group is None:
                    if groups.in_use(group_id):
                        continue  # classic members have joined meanwhile
                    group = groups.made_consumer(group_id)
            if await looked(self._groups, self._lookups, group, beat):
                return group
        raise KafkaRefusal(COORDINATOR_NOT_AVAILABLE, "the group keeps changing its protocol")

    async def _made_ready(self, group_id: str, beat: Heartbeat) -> None:
        """Prepare the group for its first member of the newer protocol. A classic group with
        members is upgraded, and they stay in it (KIP-848, "online migration").
        """
        groups = self._groups
        older = groups.find(group_id)
        if older is None or not older.in_use:
            await groups.expect_consumers(group_id)
            return
        names = groups.subscribed_topics(group_id)
        if names is None:
            raise KafkaRefusal(
                GROUP_ID_NOT_FOUND, "the group is one of the older protocol, and stays so"
            )
        topics = await self._lookups.find(names | (beat.names or set()), set())
        await groups.expect_consumers(group_id)
        if groups.find(group_id) is older and older.in_use:
            groups.move_over(older, topics)

    async def on_consumer_group_describe(
        self, context: RequestContext, request: ConsumerGroupDescribeRequest
    ) -> ConsumerGroupDescribeResponse:
        groups = await described(
            request.group_ids,
            partial(self._described, context.caller),
            context.caller if request.include_authorized_operations else None,
        )
        return ConsumerGroupDescribeResponse(groups=groups)

    async def _described(self, caller: Caller, group_id: str) -> DescribedConsumerGroup:
        group_response = DescribedConsumerGroup(
            error_code=NONE,
            group_id=group_id,
            group_state=ConsumerState.EMPTY.value,
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
        )
        group_response.error_code = await ready(self._groups, group_id)
        if group_response.error_code != NONE:
            return group_response
        group = self._groups.consumer(group_id)
        if group is not None:
            group_response.group_state, group_response.assignor_name = (
                group.state.value,
                group.assignor,
            )
            group_response.group_epoch = group_response.assignment_epoch = group.epoch
            names = group.topics.names
            group_response.members = [_member(group, one, names) for one in group.members.values()]
            _hide(caller, group_response)
            return group_response
        try:
            record = await self._records.find(group_id)
        except BrokerError as error:
            group_response.error_code = commit_code(error)
            return group_response
        if record is None or record.kind != CONSUMER or self._groups.in_use(group_id):
            group_response.group_state, group_response.error_code = (
                ConsumerState.DEAD.value,
                GROUP_ID_NOT_FOUND,
            )
            group_response.error_message = f"{group_id} is no group of the newer protocol"
        return group_response


def _hide(caller: Caller, described: DescribedConsumerGroup) -> None:
    """Leave out the members of a group with a topic that the client may not describe."""
    assignments = [
        each for one in described.members for each in (one.assignment, one.target_assignment)
    ]
    names = {part.topic_name for each in assignments for part in each.topic_partitions}
    if all(caller.may(Action.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        return
    described.error_code, described.members = TOPIC_AUTHORIZATION_FAILED, []
    described.error_message = "The group has topics that the client may not describe."


def _check(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Raise `KafkaRefusal` for a request that no member may send."""
    joins = request.member_epoch == JOIN
    wants = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    owned = request.topic_partitions
    rules = (
        (request.group_id, "a group has a name"),
        (request.member_id or (joins and version < OWN_ID_VERSION), "a member has an id"),
        (request.instance_id != "" and request.rack_id != "", "a name is not empty"),
        (request.member_epoch >= LEAVE_FOR_NOW, "there is no such epoch"),
        (
            request.member_epoch != LEAVE_FOR_NOW or request.instance_id is not None,
            "only a static member leaves temporarily",
        ),
        (not joins or request.rebalance_timeout_ms > 0, "a join has a rebalance timeout"),
        (not joins or owned == [], "a join has no partitions yet"),
        (not joins or wants, "a join has a subscription"),
        (len(request.subscribed_topic_names or ()) <= NAMES_MAX, "these are too many topics"),
        (
            sum(len(one.partitions) for one in owned or ()) <= OWNED_MAX,
            "these are too many partitions",
        ),
    )
    for holds, rule in rules:
        if not holds:
            raise KafkaRefusal(INVALID_REQUEST, rule)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise KafkaRefusal(UNSUPPORTED_ASSIGNOR, f"there are {' and '.join(ASSIGNORS)}")
    try:
        compiled(request.subscribed_topic_regex or "")
    except BadPattern as error:
        raise KafkaRefusal(INVALID_REGULAR_EXPRESSION, str(error)) from error


async def looked(
    groups: GroupCoordinator, lookups: Lookups, group: ConsumerGroup, beat: Heartbeat
) -> bool:
    """Look up the topics of the group if that is due; False if the group ended meanwhile."""
    while not group.is_dead:
        names, patterns = _topics_of(group, beat)
        if not _is_to_look(group, beat, groups.now()):
            return True
        topics = await lookups.find(names, patterns)
        if _topics_of(group, beat) == (names, patterns) and not group.is_dead:
            group.set_topics(topics, groups.now())  # no other subscription has changed
            return True
    return False


def _beat(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Heartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    waits_ms = request.rebalance_timeout_ms
    return Heartbeat(
        member_id=request.member_id or str(uuid.uuid4()),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_seconds=waits_ms / 1000 if waits_ms > 0 else None,
        names=None if names is None else frozenset(names),
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None
        if owned is None
        else frozenset((one.topic_id, number) for one in owned for number in one.partitions),
        client_id=context.client_id,
        host=f"/{context.caller.host}",
    )


def _with_hidden(caller: Caller, group: ConsumerGroup, beat: Heartbeat) -> Heartbeat:
    """The heartbeat, with the matches of its member's pattern that the client may not describe
    (KIP-848). They are found again only if the matches or rights have changed.
    """
    judge, member = caller.access.judge, group.members.get(beat.member_id)
    pattern = beat.pattern if beat.pattern is not None else member.pattern if member else ""
    matches = group.topics.matches.get(pattern) if pattern else None
    if judge is None or not matches:
        return beat
    if (
        caller.hidden is None
        or caller.hidden.of is not matches
        or (caller.hidden.generation != judge.generation)
    ):
        hidden = [
            name for name in matches if not caller.may(Action.DESCRIBE, ResourceType.TOPIC, name)
        ]
        caller.hidden = HiddenTopics(matches, judge.generation, frozenset(hidden))
    return replace(beat, hidden=caller.hidden.names)


def _topics_of(group: ConsumerGroup, beat: Heartbeat) -> tuple[set[str], set[str]]:
    """Topic names and patterns of all members, and of this heartbeat."""
    patterns = {beat.pattern} if beat.pattern else set()
    return group.names() | (beat.names or set()), group.patterns() | patterns


def _is_to_look(group: ConsumerGroup, beat: Heartbeat, now: float) -> bool:
    if beat.epoch < 0:
        return False
    says = beat.names is not None or bool(beat.pattern)
    return says or now >= group.looked + LOOK_SECONDS


def _member(
    group: ConsumerGroup, member: ConsumerMember, names: Mapping[bytes, str]
) -> DescribedConsumer:
    return DescribedConsumer(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.pattern or None,
        assignment=_assignment(member.assigned, names),
        target_assignment=_assignment(group.targets[member.id], names),
        member_type=CLASSIC_MEMBER if member.classic is not None else CONSUMER_MEMBER,
    )


def _assignment(
    partitions: Iterable[TopicIdPartition], names: Mapping[bytes, str]
) -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=[
            DescribedTopicPartitions(
                topic_id=topic, topic_name=names.get(topic, ""), partitions=numbers
            )
            for topic, numbers in by_topic(partitions).items()
        ]
    )
