"""Whatever members do, and whenever: who waits is told once, and the books are right."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ports.ledger_store import Done
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.groups.classic.group import Group
from magnetar.wire.kafka.groups.classic.group_record import StoredGroup
from magnetar.wire.kafka.groups.classic.join_phase import RebalanceRules
from magnetar.wire.kafka.groups.classic.member import Joined, Joining, Synced, Syncing
from magnetar.wire.kafka.groups.classic.state import ClassicGroupState
from magnetar.wire.kafka.groups.memory_budget import GroupMemory

INSTANCES = st.sampled_from([None, None, "a", "b"])
PROTOCOLS = st.sampled_from(
    [(("range", b"r"),), (("sticky", b"s"), ("range", b"rr")), (("sticky", bytes(50)),)]
)
SECONDS_MAX = 1_000
"""After so long, nobody can still be waiting who has nobody to wait for."""


class Waiting:
    """One call, and how often it was answered."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def __call__(self, result: Any) -> None:
        self.results.append(result)
        assert len(self.results) == 1, "told twice"


class Members(RuleBasedStateMachine):
    """One group, and clients that do what they like."""

    def __init__(self) -> None:
        super().__init__()
        numbers = itertools.count()
        self.memory = GroupMemory(12_000)
        self.keeps: list[Done] = []
        rules = RebalanceRules(
            4, 3.0, lambda name: f"{name}-{next(numbers)}", self._keep, list[Any]().append
        )
        self.group = Group("g", rules, self.memory)
        self.now = 0.0
        self.known: list[str] = [""]
        self.joins: list[Waiting] = []
        self.syncs: list[Waiting] = []
        self.leaders: dict[int, str] = {}

    def _keep(self, _: str, kept: StoredGroup | None, done: Done) -> None:
        if kept is None:
            assert not self.group.members
        else:
            assert kept.leader in [one.member_id for one in kept.members]
        self.keeps.append(done)

    @precondition(lambda self: self.keeps)
    @rule(fails=st.sampled_from([False, False, True]))
    def keep(self, fails) -> None:
        self.keeps.pop(0)(StorageFailed("for now") if fails else None)

    @rule(
        who=st.integers(0, 100),
        instance=INSTANCES,
        protocols=PROTOCOLS,
        id_required=st.booleans(),
        session=st.sampled_from([5.0, 30.0]),
    )
    def join(self, who, instance, protocols, id_required, session) -> None:
        request = Joining(
            member_id=self.known[who % len(self.known)],
            instance_id=instance,
            client_id="c",
            host="/h",
            session_seconds=session,
            rebalance_seconds=20.0,
            protocol_type="consumer",
            protocols=protocols,
            id_required=id_required,
        )
        self.joins.append(Waiting())
        self.group.join(request, self.now, self.joins[-1])

    @precondition(lambda self: len(self.known) > 1)
    @rule(who=st.integers(0, 100), old=st.booleans())
    def sync(self, who, old) -> None:
        member_id = self.known[who % len(self.known)]
        given = {one.id: one.id.encode() for one in self.group.members}
        request = Syncing(member_id, self.group.generation - old, assignments=given)
        self.syncs.append(Waiting())
        self.group.sync(request, self.now, self.syncs[-1])

    @rule(who=st.integers(0, 100), instance=INSTANCES)
    def leave(self, who, instance) -> None:
        self.group.leave(self.known[who % len(self.known)], instance, self.now)

    @rule(who=st.integers(0, 100))
    def beat(self, who) -> None:
        member_id = self.known[who % len(self.known)]
        self.group.heartbeat(member_id, self.group.generation, None, self.now)

    @rule(seconds=st.sampled_from([0.5, 4.0, 25.0]))
    def wait(self, seconds) -> None:
        self.now += seconds
        if self.group.due <= self.now:
            self.group.tick(self.now)

    @invariant()
    def what_was_told_is_right(self) -> None:
        for waiting in self.joins:
            self._hear(waiting)
        self.joins = [one for one in self.joins if not one.results]
        for waiting in self.syncs:
            for results in waiting.results:
                assert isinstance(results, Synced)
        self.syncs = [one for one in self.syncs if not one.results]

    def _hear(self, waiting: Waiting) -> None:
        for results in waiting.results:
            assert isinstance(results, Joined)
            if results.error_code in (errors.NONE, errors.MEMBER_ID_REQUIRED):
                self.known.append(results.member_id)
            if results.error_code == errors.NONE and results.leader == results.member_id:
                ids = [member_id for member_id, _, _ in results.members]
                assert results.member_id in ids
                assert len(set(ids)) == len(ids)

    @invariant()
    def nobody_waits_unknown_to_the_group(self) -> None:
        joining = sum(one.join_waits is not None for one in self.group.members)
        syncing = sum(one.sync_waits is not None for one in self.group.members)
        assert joining == sum(not one.results for one in self.joins)
        assert syncing == sum(not one.results for one in self.syncs)

    @invariant()
    def the_books_are_right(self) -> None:
        group = self.group
        assert (group.state is ClassicGroupState.EMPTY) is (len(group.members) == 0)
        assert len(group.members) <= 4
        assert 0 <= self.memory.used_bytes <= self.memory.bytes_max
        if group.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
            assert group.members.get(group.leader) is not None
        instances = [one.instance_id for one in group.members if one.instance_id]
        assert len(set(instances)) == len(instances)

    def teardown(self) -> None:
        for done in self.keeps:
            done(None)
        for _ in range(SECONDS_MAX):
            self.now += 1.0
            if self.group.due <= self.now:
                self.group.tick(self.now)
        self.what_was_told_is_right()
        assert self.joins == self.syncs == []
        assert self.group.is_over
        assert self.memory.used_bytes == 0


TestMembers = Members.TestCase
TestMembers.settings = settings(max_examples=150, stateful_step_count=40)
