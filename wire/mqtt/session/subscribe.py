"""SUBSCRIBE and UNSUBSCRIBE of one connection.

A subscription to a filter that the session has replaces the old one, without a gap [MQTT-3.8.4-3].
SUBACK is sent when the logs are open and, for a session that lasts, the record is stored. Retained
messages follow it.

Invariant: a granted subscription gets every matching message that is stored after SUBACK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from magnetar.core.kernel.errors import BrokerError, InvalidName, NotReady, Unauthorized
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.packets import (
    RetainHandling,
    Subscribe,
    SubscriptionOptions,
    Unsubscribe,
)
from magnetar.wire.mqtt.codec.properties import Properties, Property
from magnetar.wire.mqtt.delivery.matcher import TopicSubscription, stored_size, weight
from magnetar.wire.mqtt.errors import PacketError, reason_of
from magnetar.wire.mqtt.reason_codes import ReasonCode

if TYPE_CHECKING:
    from magnetar.wire.mqtt.delivery.logs import MqttLog
    from magnetar.wire.mqtt.delivery.subscriber import Cut
    from magnetar.wire.mqtt.services import MqttServices
    from magnetar.wire.mqtt.session.client import ConnectedClient


class _Granted(NamedTuple):
    """A granted subscription whose retained messages are due."""

    subscription: TopicSubscription
    is_new: bool
    handling: RetainHandling
    cut: Cut


FILTER_BYTES: Final = 300
"""Memory of a filter of a packet while that is handled."""
TRIES_MAX: Final = 5
"""How often the logs of a filter are opened, if they are unloaded or the rules change meanwhile."""
FILTERS_PER_TURN: Final = 100
"""Filters that are handled in one turn, after which other tasks run."""


class _Answer(NamedTuple):
    """The answer to a packet, which is sent when the record is stored."""

    encoded: Callable[[Properties], bytes]
    problem: str = ""
    granted: Sequence[_Granted] = ()


async def on_requests(
    services: MqttServices, client: ConnectedClient, packets: Sequence[Subscribe | Unsubscribe]
) -> None:
    """Answer consecutive packets in their order. The record is stored once for all of them: many
    clients send a packet for each filter.
    """
    with _reserved(client, sum(len(packet.filters) for packet in packets)):
        answers = []
        for packet in packets:
            if isinstance(packet, Subscribe):
                answer = await _on_subscribe(services, client, packet)
            else:
                answer = await _on_unsubscribe(services, client, packet)
            if answer is None:
                return
            answers.append(answer)
        if client.lasts:
            await client.saved()
        for answer in answers:
            client.answer(answer.encoded, answer.problem)
            _replay(services, client, answer.granted)


@contextmanager
def _reserved(client: ConnectedClient, filters: int) -> Iterator[None]:
    """Have memory for packets of so many filters until they are answered."""
    size = FILTER_BYTES * filters
    if not client.connection.has_room_for(size):
        raise PacketError(ReasonCode.SERVER_BUSY, f"no memory for {filters} filters")
    try:
        yield
    finally:
        client.connection.has_answered(size)


async def _on_subscribe(
    services: MqttServices, client: ConnectedClient, packet: Subscribe
) -> _Answer | None:
    """Subscribe to the filters of a packet; None if the client is gone."""
    identifier = packet.properties.get(Property.SUBSCRIPTION_IDENTIFIER, 0)
    reasons: list[ReasonCode] = []
    granted: list[_Granted] = []
    problem = ""
    for count, (filter, options) in enumerate(packet.filters, 1):
        if count % FILTERS_PER_TURN == 0:
            await trio.lowlevel.checkpoint()
        try:
            reason = _refusal(services, client, filter)
            if reason is None:
                one = await _subscribe(services, client, filter, options, identifier)
                if one is None:
                    return None
                granted.append(one)
                reason = ReasonCode(options.qos)
        except BrokerError as error:
            reason, problem = reason_of(error), str(error)
            if reason is ReasonCode.TOPIC_NAME_INVALID:
                reason = ReasonCode.TOPIC_FILTER_INVALID
        reasons.append(reason)
    encoded = partial(encode.suback, client.version, packet.packet_id, reasons)
    return _Answer(encoded, problem, granted)


def _replay(services: MqttServices, client: ConnectedClient, granted: Sequence[_Granted]) -> None:
    """Have retained messages sent to new subscriptions (3.8.3.1)."""
    for one in granted:
        if one.subscription.filter.startswith(topics.SHARE):
            continue  # no retained messages are sent to a shared subscription (4.8.2)
        wanted = one.handling is RetainHandling.ALWAYS or (
            one.is_new and one.handling is RetainHandling.IF_NEW
        )
        if wanted:
            may_read = client.may_read_topic
            services.retained.replay(client.subscriber, one.subscription, one.cut, may_read)
            services.sys_topics.replay(client.subscriber, one.subscription)


def _refusal(services: MqttServices, client: ConnectedClient, filter: str) -> ReasonCode | None:
    """The reason not to subscribe to a filter; None for none."""
    if filter.startswith(topics.SHARE):
        try:
            topics.shared(filter)
        except ValueError:
            return ReasonCode.TOPIC_FILTER_INVALID
    elif not topics.is_filter(filter):
        return ReasonCode.TOPIC_FILTER_INVALID
    subscriptions = client.subscriber.subscriptions
    if filter in subscriptions.by_filter:
        return None
    options, sessions = services.options, services.sessions
    if (
        len(subscriptions.by_filter) >= options.subscriptions_max
        or subscriptions.size + stored_size(filter) > options.subscriptions_size_max
        or services.matcher.bytes + services.groups.bytes + weight(filter)
        > options.subscriptions_bytes_max
        or (client.lasts and sessions.records.bytes_stored > options.sessions_bytes_max)
    ):
        return ReasonCode.QUOTA_EXCEEDED
    return None


async def _subscribe(
    services: MqttServices,
    client: ConnectedClient,
    filter: str,
    options: SubscriptionOptions,
    identifier: int,
) -> _Granted | None:
    """Subscribe, after all that can fail; None if the client is gone."""
    subscription = TopicSubscription(
        filter, options.qos, options.no_local, options.retain_as_published, identifier
    )
    shared = topics.shared(filter) is not None
    logs = await _open_logs(services, client, subscription)
    if shared and client.lasts and not client.gone:
        await services.groups.keep(client.client_id, filter, logs)
    try:
        if shared:  # meanwhile the group may read more, and the client less
            read = services.groups.read_by(filter, logs)
            services.rights.check_subscription(client.asker, filter, read)
    except Unauthorized:
        _give_up(services, client, filter)
        raise
    if client.gone:
        _give_up(services, client, filter)
        return None
    cut = services.retained.cut(client.subscriber, () if shared else logs)
    is_new = client.subscriber.subscriptions.add(subscription)
    if shared:
        services.groups.enter(client.client_id, client.subscriber, subscription, logs)
    else:
        services.matcher.add(client.subscriber, subscription)
        client.join(filter, logs)
    return _Granted(subscription, is_new, options.retain_handling, cut)


def _give_up(services: MqttServices, client: ConnectedClient, filter: str) -> None:
    """The client does not subscribe after all."""
    is_kept = filter.startswith(topics.SHARE) and client.lasts
    if is_kept and filter not in client.subscriber.subscriptions.by_filter:
        services.groups.give_up(client.client_id, filter)


async def _open_logs(
    services: MqttServices, client: ConnectedClient, subscription: TopicSubscription
) -> list[MqttLog]:
    """The logs of a filter, which keep what the session needs. When this returns, all are loaded,
    and they are those of the present rules.
    """
    filter = subscription.filter
    _check_before_opening(services, client, filter)
    for _ in range(TRIES_MAX):
        generation = services.logs.generation
        logs = await (
            services.groups.logs_of(filter)
            if filter.startswith(topics.SHARE)
            else services.logs.sources_of(filter)
        )
        services.rights.check_subscription(client.asker, filter, [log.name for log in logs])
        if subscription.qos:
            for log in logs:
                await services.hold.keep(log)
        are_kept = not subscription.qos or all(map(services.hold.holds, logs))
        are_loaded = all(log.feed.is_attached for log in logs)
        if services.logs.generation == generation and are_loaded and are_kept:
            return logs
    raise NotReady(f"the logs of {filter} are being unloaded")


def _check_before_opening(services: MqttServices, client: ConnectedClient, filter: str) -> None:
    """Nothing is loaded or created for a client that may not read it. A filter with wildcards finds
    what is there, and is looked at when that is known.
    """
    shared = topics.shared(filter)
    name = shared.filter if shared else filter
    if topics.is_name(name) and not topics.is_sys(name):
        with suppress(InvalidName):  # there is nothing to open
            base = services.logs.rules.topic_for(name)
            services.rights.check_subscription(client.asker, filter, [base])


async def _on_unsubscribe(
    services: MqttServices, client: ConnectedClient, packet: Unsubscribe
) -> _Answer | None:
    reasons: list[ReasonCode] = []
    for count, filter in enumerate(packet.filters, 1):
        if count % FILTERS_PER_TURN == 0:
            await trio.lowlevel.checkpoint()
        if client.gone:
            return None  # its subscriptions may be those of another connection now
        reasons.append(_unsubscribe(services, client, filter))
    return _Answer(partial(encode.unsuback, client.version, packet.packet_id, reasons))


def _unsubscribe(services: MqttServices, client: ConnectedClient, filter: str) -> ReasonCode:
    """End the subscription to exactly that filter [MQTT-3.10.4-1]. Messages in flight are completed
    [MQTT-3.10.4-3].
    """
    if not client.subscriber.subscriptions.remove(filter):
        return ReasonCode.NO_SUBSCRIPTION_EXISTED
    if filter.startswith(topics.SHARE):
        services.groups.unsubscribe(client.client_id, client.subscriber, filter)
        return ReasonCode.SUCCESS
    services.matcher.remove(client.subscriber, filter)
    client.leave_logs(filter)
    return ReasonCode.SUCCESS
