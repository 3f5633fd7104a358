"""Which member gets a message, and what becomes of it when the member leaves."""

from __future__ import annotations

import random

import pytest
import trio

from magnetar.core.testing.bench import NO_AGE, Bench, settled
from magnetar.wire.mqtt.delivery.matcher import TopicSubscription
from magnetar.wire.mqtt.delivery.shared_group import SharedGroup
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.delivery.tests.test_subscriber import Desk, Outlet


class Sharing:
    """One group on one topic."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.changes = 0
        self.group = self.another()
        desk.matcher.add(self.group, TopicSubscription("#", 2))

    def another(self) -> SharedGroup:
        return SharedGroup("$share/g/#", "#", self._changed, self.desk.bench.env.spawn)

    def _changed(self, _group: SharedGroup) -> None:
        self.changes += 1

    def member(self, name: str, qos: int = 1, window: int = 10) -> tuple[Subscriber, Outlet]:
        made, outlet = self.desk.subscriber(name, window=window)
        feed = self.desk.feed
        self.group.attach(made, TopicSubscription("$share/g/#", qos), {feed.full_name: feed})
        return made, outlet

    def acknowledge(self, member: Subscriber, number: int) -> None:
        """What a session does with PUBACK."""
        found = member.ids.acknowledged(number)
        if found is not None:
            self.group.acknowledged(found)
        member.has_room()

    async def publish(self, *payloads: bytes, qos: int = 1) -> None:
        for payload in payloads:
            await self.desk.publish(("t", qos, payload))


@pytest.fixture
async def sharing(nursery: trio.Nursery) -> Sharing:
    bench = Bench(nursery, NO_AGE, sync_at_once=True)
    return Sharing(Desk(bench, await bench.topic()))


async def test_who_has_no_room_is_passed_over(sharing: Sharing) -> None:
    small, few = sharing.member("small", window=1)
    _, many = sharing.member("large")
    await sharing.publish(b"0", b"1", b"2", b"3")
    assert few.payloads == [b"0"]
    assert many.payloads == [b"1", b"2", b"3"]
    sharing.acknowledge(small, 1)
    await sharing.publish(b"4")
    assert few.payloads == [b"0", b"4"]


async def test_the_group_lags_when_nobody_has_room(sharing: Sharing) -> None:
    one, outlet = sharing.member("one", window=2)
    await sharing.publish(b"0", b"1", b"2", b"3")
    assert (outlet.payloads, sharing.group.lags) == ([b"0", b"1"], True)
    _, other = sharing.member("two", window=1)
    await settled()
    assert other.payloads == [b"2"]
    sharing.acknowledge(one, 1)
    await settled()
    assert outlet.payloads == [b"0", b"1", b"3"]
    assert not sharing.group.lags


async def test_congested_members_lose_messages_of_qos_0_to_others(sharing: Sharing) -> None:
    _, first = sharing.member("1", 0)
    _, second = sharing.member("2", 1)
    await sharing.publish(b"0", b"1", qos=0)
    first.congested = second.congested = True
    await sharing.publish(b"2", b"3", qos=0)  # now both know
    before = first.payloads + second.payloads
    await sharing.publish(b"lost", qos=0)
    assert first.payloads + second.payloads == before


async def test_a_sleeping_group_keeps_its_place(sharing: Sharing) -> None:
    one, outlet = sharing.member("one")
    await sharing.publish(b"0", b"1")
    sharing.acknowledge(one, 1)
    sharing.group.detach(one, lasts=True)
    await sharing.publish(b"2")
    assert [place for _, place in sharing.group.unacknowledged()]
    _, other = sharing.member("two")
    await settled()
    assert outlet.payloads == [b"0", b"1"]
    assert sorted(other.payloads) == [b"1", b"2"]


async def test_a_group_is_restored(sharing: Sharing) -> None:
    one, _ = sharing.member("one")
    await sharing.publish(b"0", b"1", b"2")
    sharing.acknowledge(one, 2)
    places, returned = sharing.group.places(), sharing.group.unacknowledged()
    sharing.group.detach(one, lasts=True)
    sharing.desk.matcher.remove(sharing.group, "#")
    await sharing.publish(b"3")
    sharing.group = sharing.another()
    sharing.group.restore(places, returned)
    _, outlet = sharing.member("two")
    await settled()
    assert sorted(outlet.payloads) == [b"0", b"2", b"3"]


async def test_a_message_that_is_no_longer_stored_is_forgotten(sharing: Sharing) -> None:
    one, _ = sharing.member("one")
    await sharing.publish(b"0")
    (message,) = sharing.group.unacknowledged()
    sharing.group.detach(one, lasts=True)
    name, place = message
    gone = place._replace(place=7)
    sharing.group.restore({}, [(name, gone), ("persistent://a/b/unknown", place)])
    _, outlet = sharing.member("two")
    await settled()
    assert outlet.payloads == [b"0"]
    assert len(sharing.group.unacknowledged()) == 1


async def test_of_qos_2_only_a_session_that_ends_returns_nothing(sharing: Sharing) -> None:
    """[MQTT-4.8.2-5]: to nobody else, whether its session lasts or not."""
    ends, _ = sharing.member("ends", 2)
    lasts, _ = sharing.member("lasts", 2)
    await sharing.publish(b"0", b"1", qos=2)
    sharing.group.detach(ends, lasts=False)
    assert (len(ends.ids), len(sharing.group.unacknowledged())) == (0, 1)
    sharing.group.detach(lasts, lasts=True)
    assert (len(lasts.ids), len(sharing.group.unacknowledged())) == (1, 0)
    _, outlet = sharing.member("other", 2)
    await settled()
    assert outlet.payloads == []


@pytest.mark.parametrize("seed", range(10))
async def test_all_is_acknowledged_once(sharing: Sharing, seed: int) -> None:
    """Members come and go, and acknowledge or do not: nothing is lost, nothing comes again."""
    chance = random.Random(seed)
    members: dict[Subscriber, Outlet] = {}
    acknowledged: list[bytes] = []

    def acknowledge_some(share: float) -> None:
        for member, outlet in members.items():
            for number, _ in list(member.ids):
                if chance.random() < share:
                    payload = {one.packet_id: data for one, data in outlet.packets}[number]
                    acknowledged.append(payload)
                    sharing.acknowledge(member, number)

    for step in range(80):
        await sharing.publish(b"%d" % step)
        if chance.random() < 0.2 or not members:
            made, outlet = sharing.member(str(step), window=chance.randint(1, 5))
            members[made] = outlet
        if chance.random() < 0.15:
            leaver = chance.choice(list(members))
            sharing.group.detach(leaver, lasts=chance.random() < 0.5)
            del members[leaver]
        acknowledge_some(0.4)
    made, outlet = sharing.member("last")
    members[made] = outlet
    for _ in range(300):
        await settled()
        acknowledge_some(1)
    expected = [b"%d" % step for step in range(1, 80)]  # nobody was there for the first one
    assert sorted(acknowledged, key=int) == expected
    assert sharing.group.unacknowledged() == []
