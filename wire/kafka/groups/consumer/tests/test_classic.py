"""Members of the classic protocol in a group of the newer one: by hand, and at random."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.groups.classic import consumer_protocol
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, Synced, Syncing
from magnetar.wire.kafka.groups.consumer import classic
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition
from magnetar.wire.kafka.groups.consumer.group import ConsumerState
from magnetar.wire.kafka.groups.consumer.tests.test_group import ALL, A, Desk, parts
from magnetar.wire.kafka.groups.consumer.tests.test_group_properties import (
    NAMES,
    B,
    Reader,
    Readers,
    Topics,
)
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerSubscription
from magnetar.wire.kafka.messages.parts import TopicPartitions

CALLED = {A: "a", B: "b"}


def words(names: Any, owned: Any = (), version: int = 3) -> bytes:
    held = [TopicPartitions(topic=CALLED[topic], partitions=[number]) for topic, number in owned]
    said = ConsumerSubscription(topics=sorted(names), owned_partitions=held)
    return version.to_bytes(2, "big") + b"".join(encoder(type(said), version, False)(said))


def request(member_id: str, metadata: bytes, **fields: Any) -> Joining:
    protocols = tuple((name, metadata) for name in fields.pop("protocols", ("range",)))
    return Joining(
        **{
            "member_id": member_id,
            "instance_id": None,
            "client_id": "c",
            "host": "/h",
            "session_seconds": 10.0,
            "rebalance_seconds": 20.0,
            "protocol_type": "consumer",
            "protocols": protocols,
            "id_required": False,
            **fields,
        }
    )


def told_to_read(results: Synced) -> frozenset[TopicIdPartition]:
    found = consumer_protocol.assignment_in(results.assignment)
    assert found is not None
    ids = {name: topic for topic, name in CALLED.items()}
    return frozenset(
        (ids[one.topic], n) for one in found.assigned_partitions for n in one.partitions
    )


class Mixed(Desk):
    """The desk, with members of both kinds."""

    new_ids = "{}-new"

    def come(self, member_id: str, owned: Any = (), names: Any = "a", **fields: Any) -> Joined:
        requested = request(member_id, words(names, owned), **fields)
        said = classic.subscription_of(requested)
        assert said is not None
        return classic.join(self.group, requested, said, self.new_ids.format, self.now)

    def ask(self, joined: Joined, **fields: Any) -> Synced:
        requested = Syncing(joined.member_id, joined.generation, **fields)
        return classic.sync(self.group, requested, self.now)

    def live(self, joined: Joined, instance_id: str | None = None) -> int:
        who, generation = joined.member_id, joined.generation
        return classic.heartbeat(self.group, who, generation, instance_id, self.now)


def test_it_is_told_what_to_read() -> None:
    desk = Mixed()
    joined = desk.come("m", protocols=("roundrobin", "range"))
    assert (joined.error_code, joined.generation, joined.member_id) == (0, 1, "m")
    assert (joined.protocol_type, joined.protocol, joined.leader) == ("consumer", "roundrobin", "")
    synced = desk.ask(joined, protocol_type="consumer", protocol="roundrobin")
    assert (synced.error_code, synced.protocol) == (0, "roundrobin")
    assert told_to_read(synced) == ALL
    assert desk.live(joined) == errors.NONE
    assert desk.group.check_commit("m", 1) == errors.NONE
    assert desk.group.check_commit("m", 2) == errors.ILLEGAL_GENERATION


def test_an_eager_one_lets_go_by_coming_again() -> None:
    desk = Mixed()
    first = desk.come("m")
    desk.ask(first)
    desk.join("n")
    assert desk.live(first) == desk.ask(first).error_code == errors.REBALANCE_IN_PROGRESS
    assert desk.beat("n", 2).assigned is None, "it has not let go yet"
    again = desk.come("m")
    assert again.generation == 2
    keeps = told_to_read(desk.ask(again))
    assert len(keeps) == 2
    assert desk.beat("n", 2).assigned == ALL - keeps
    assert desk.live(again) == errors.NONE
    assert desk.group.state is ConsumerState.STABLE


def test_a_cooperative_one_keeps_what_it_may() -> None:
    desk = Mixed()
    first = desk.come("m")
    desk.ask(first)
    desk.join("n")
    again = desk.come("m", owned=ALL)
    assert again.generation == 1, "not before it has let go"
    keeps = told_to_read(desk.ask(again))
    assert len(keeps) == 2
    assert desk.beat("n", 2).assigned is None
    assert desk.live(again) == errors.REBALANCE_IN_PROGRESS
    last = desk.come("m", owned=keeps)
    assert last.generation == 2
    assert told_to_read(desk.ask(last)) == keeps
    assert desk.beat("n", 2).assigned == ALL - keeps


def test_it_is_called_when_what_it_lacks_is_free() -> None:
    desk = Mixed()
    desk.join("n")
    waits = desk.come("m")
    assert told_to_read(desk.ask(waits)) == frozenset()
    assert desk.live(waits) == errors.NONE, "to come now would bring it nothing"
    keeps = desk.beat("n", 1, ALL).assigned
    assert keeps is not None
    desk.beat("n", 1, keeps)
    assert desk.live(waits) == errors.REBALANCE_IN_PROGRESS
    assert told_to_read(desk.ask(desk.come("m"))) == ALL - keeps


def test_who_does_not_come_again_or_does_not_ask_is_out() -> None:
    desk = Mixed()
    first = desk.come("m")
    for _ in range(2):
        desk.wait(9)
        assert desk.live(first) == errors.NONE
    desk.wait(9)
    assert desk.live(first) == errors.UNKNOWN_MEMBER_ID, "it has not asked what to read"
    first = desk.come("m")
    desk.ask(first)
    desk.wait(9)
    assert desk.live(first) == errors.NONE
    desk.wait(11)
    assert desk.live(first) == errors.UNKNOWN_MEMBER_ID, "silent for its own session's time"
    first = desk.come("m")
    desk.ask(first)
    desk.join("n")
    for _ in range(3):
        assert desk.live(first) == errors.REBALANCE_IN_PROGRESS
        desk.wait(7)
    assert desk.live(first) == errors.UNKNOWN_MEMBER_ID, "it was told to come again"


def test_a_static_one_comes_back_to_what_it_had() -> None:
    desk = Mixed()
    desk.new_ids = "{}-old"
    first = desk.come("", instance_id="i")
    assert first.member_id == "i-old"
    desk.ask(first)
    desk.new_ids = "{}-new"
    back = desk.come("", instance_id="i")
    assert (back.member_id, back.generation) == ("i-new", 1), "nobody else notices"
    assert told_to_read(desk.ask(back, instance_id="i")) == ALL
    late = Joined(generation=1, member_id="i-old")
    assert desk.live(late, "i") == errors.FENCED_INSTANCE_ID
    assert desk.come("i-old", instance_id="i").error_code == errors.FENCED_INSTANCE_ID
    assert classic.leave(desk.group, "i-old", "i") == errors.FENCED_INSTANCE_ID
    assert classic.leave(desk.group, "", "i") == errors.NONE
    assert desk.memory.used_bytes == 0


def test_a_newcomer_comes_again_with_its_id() -> None:
    desk = Mixed()
    results = desk.come("", id_required=True)
    assert (results.error_code, results.member_id) == (errors.MEMBER_ID_REQUIRED, "c-new")
    assert not desk.group.in_use
    assert desk.come(results.member_id, id_required=True).error_code == errors.NONE


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocols": ("other",)}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "i"}, errors.NONE),
    ],
)
def test_who_may_join(fields: dict[str, Any], code: int) -> None:
    desk = Mixed()
    desk.come("m", protocols=("range", "roundrobin"))
    assert desk.come("n", **fields).error_code == code


def test_a_group_that_is_full() -> None:
    desk = Mixed(size_max=1)
    desk.join("n")
    assert desk.come("m").error_code == errors.GROUP_MAX_SIZE_REACHED
    assert Mixed(bytes_max=100).come("m").error_code == errors.COORDINATOR_NOT_AVAILABLE


def test_what_makes_no_sense() -> None:
    for requested in (
        request("m", words("a"), protocol_type="connect"),
        request("m", b""),
        request("m", b"", protocols=()),
    ):
        assert classic.subscription_of(requested) is None
    desk = Mixed()
    joined = desk.come("m")
    wrong = errors.INCONSISTENT_GROUP_PROTOCOL
    assert desk.ask(joined, protocol="roundrobin").error_code == wrong
    assert desk.ask(joined, protocol_type="connect").error_code == wrong
    assert desk.ask(Joined(generation=7, member_id="m")).error_code == errors.ILLEGAL_GENERATION
    assert desk.ask(Joined(generation=1, member_id="x")).error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.live(joined, "unheard-of") == errors.UNKNOWN_MEMBER_ID


def test_the_two_kinds_of_members_are_not_mistaken() -> None:
    desk = Mixed()
    desk.join("n")
    assert desk.live(Joined(generation=1, member_id="n")) == errors.UNKNOWN_MEMBER_ID
    assert classic.leave(desk.group, "n", None) == errors.UNKNOWN_MEMBER_ID
    desk.come("m")
    assert desk.beat("m", 2).error_code == errors.UNKNOWN_MEMBER_ID
    assert desk.join("m").error_code == errors.NONE, "it has learnt the newer protocol"
    assert not desk.group.is_left_to_classic
    assert desk.beat("n", -1).error_code == desk.come("m").error_code == errors.NONE
    assert desk.group.is_left_to_classic, "and forgotten it again"


def test_after_a_restart() -> None:
    desk = Mixed()
    joined = desk.come("m")
    assert told_to_read(desk.ask(joined)) == ALL
    again = desk.restarted()
    member = again.group.members["m"]
    assert member.classic == desk.group.members["m"].classic
    results = classic.sync(again.group, Syncing("m", 1), again.now)
    assert results.error_code == errors.REBALANCE_IN_PROGRESS, "nobody has looked for names yet"
    again.look(Topics({"a": A, "b": B}, {A: 4, B: 2}))
    results = classic.sync(again.group, Syncing("m", 1), again.now)
    assert told_to_read(results) == ALL
    assert parts(A, 0) <= member.assigned


# -- at random ------------------------------------------------------------------------------------


class Older(Reader):
    """A client of the classic protocol: an eager one reads nothing while it comes again."""

    def __init__(self, member_id: str, instance_id: str | None, *, eager: bool) -> None:
        super().__init__(member_id, instance_id)
        self.eager = eager
        self.is_in = self.asks = False

    def lost(self) -> None:
        self.reads, self.is_in, self.asks = set(), False, False


class AllSorts(Readers):
    """The five of the newer protocol, and three of the classic one."""

    def __init__(self) -> None:
        super().__init__()
        self.older = [
            Older("c0", None, eager=True),
            Older("c1", None, eager=False),
            Older("c2", "ic", eager=False),
        ]

    def everybody(self) -> list[Reader]:
        return [*self.readers, *self.older]

    def _come(self, who: Older, *, lost: bool) -> None:
        if who.eager:
            who.reads = set()
        self.group.set_topics(Topics({"a": A, "b": B}, dict(self.sizes)), self.now)
        requested = request(who.id, words(who.names, who.reads), instance_id=who.instance_id)
        said = classic.subscription_of(requested)
        assert said is not None
        results = classic.join(self.group, requested, said, str, self.now)
        self._keep()
        if results.error_code == errors.NONE and not lost:
            who.epoch, who.is_in, who.asks = results.generation, True, True
        elif results.error_code:
            assert results.error_code == errors.UNKNOWN_MEMBER_ID
            who.lost()

    def _ask(self, who: Older) -> None:
        results = classic.sync(self.group, Syncing(who.id, who.epoch, who.instance_id), self.now)
        who.asks = False
        if results.error_code == errors.NONE:
            who.reads = set(told_to_read(results))
        elif results.error_code != errors.REBALANCE_IN_PROGRESS:
            who.lost()
        else:
            who.is_in = False

    def _live(self, who: Older) -> None:
        said = (who.id, who.epoch, who.instance_id, self.now)
        code = classic.heartbeat(self.group, *said)
        if code == errors.REBALANCE_IN_PROGRESS:
            who.is_in = False
        elif code != errors.NONE:
            who.lost()

    @rule(who=st.integers(0, 2), lost=st.booleans())
    def older_calls(self, who: int, lost: bool) -> None:
        one = self.older[who]
        if not one.is_in:
            self._come(one, lost=lost)
        elif one.asks:
            self._ask(one)
        else:
            self._live(one)

    @rule(who=st.integers(0, 2), names=st.sampled_from(NAMES))
    def older_wants(self, who: int, names: frozenset[str]) -> None:
        self.older[who].names, self.older[who].is_in = names, False

    @rule(who=st.integers(0, 2))
    def older_leaves(self, who: int) -> None:
        one = self.older[who]
        one.lost()
        classic.leave(self.group, one.id, one.instance_id)
        self._keep()

    def settle(self) -> None:
        super().settle()
        for one in self.older:
            self._live(one) if one.is_in else self._come(one, lost=False)
            if one.asks:
                self._ask(one)


TestAllSorts = AllSorts.TestCase
TestAllSorts.settings = settings(max_examples=200, stateful_step_count=40)
