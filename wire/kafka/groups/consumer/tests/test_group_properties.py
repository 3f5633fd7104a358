"""Whatever members do, and whenever: nothing is read by two of them, and in the end all is read."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.groups.classic.group_record import StoredConsumerGroup, decode, encode
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition
from magnetar.wire.kafka.groups.consumer.group import ConsumerGroup, ConsumerState
from magnetar.wire.kafka.groups.consumer.heartbeat import (
    JOIN,
    LEAVE,
    LEAVE_FOR_NOW,
    Heartbeat,
    HeartbeatResult,
    Timing,
    Topics,
)
from magnetar.wire.kafka.groups.memory_budget import GroupMemory

A, B = b"a" * 16, b"b" * 16
NAMES = [frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})]
WHO = st.integers(0, 4)


class Reader:
    """A client that does as the protocol says: it reads what it is told, until it lets go."""

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.reads: set[TopicIdPartition] = set()
        self.results: frozenset[TopicIdPartition] = frozenset()
        self.names = NAMES[0]
        self.says_all = True

    def apply(self, results) -> None:
        if results.error_code in (errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH):
            self.epoch, self.reads, self.results, self.says_all = 0, set(), frozenset(), True
            return
        assert results.error_code == errors.NONE
        self.epoch, self.says_all = results.epoch, False
        if results.assigned is not None:
            self.results = results.assigned
            self.reads |= self.results  # what is too much it lets go later

    def let_go(self) -> None:
        self.reads &= self.results


class Readers(RuleBasedStateMachine):
    """One group, and five clients, two of them static."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = GroupMemory(100_000)
        self.sizes = {A: 3, B: 2}
        self.now = 0.0
        self.group = self._made()
        self.kept: StoredConsumerGroup | None = None
        """What is on the disk."""
        self.readers = [Reader(f"m{n}", f"i{n}" if n < 2 else None) for n in range(5)]
        self.generations = 0

    def _made(self) -> ConsumerGroup:
        return ConsumerGroup("g", 10, Timing(5.0, 45.0), self.memory)

    def _keep(self) -> None:
        if self.group.dirty:
            kept = self.group.stored()
            found = None if kept is None else decode(encode(kept))
            assert found is None or isinstance(found, StoredConsumerGroup)
            self.kept = found

    def _beat(self, reader: Reader, epoch: int, *, lost: bool = False) -> None:
        results = self._heard(reader, epoch)
        self._keep()
        if lost:
            reader.says_all = True
        else:
            reader.apply(results)

    def _heard(self, reader: Reader, epoch: int) -> HeartbeatResult:
        said = reader.says_all or epoch == JOIN
        self.group.set_topics(Topics({"a": A, "b": B}, dict(self.sizes)), self.now)
        beat = Heartbeat(
            reader.id,
            epoch,
            reader.instance_id,
            rebalance_seconds=20.0 if said else None,
            names=reader.names if said else None,
            owned=frozenset(reader.reads),
        )
        return self.group.heartbeat(beat, self.now)

    @rule(who=WHO, amid=st.booleans())
    def crash(self, who: int, amid: bool) -> None:
        """The server goes, perhaps before what it was about to say was on the disk."""
        reader = self.readers[who]
        if amid:
            self._heard(reader, reader.epoch)
            reader.says_all = True
        self.memory = GroupMemory(100_000)
        self.group = self._made()
        if self.kept is not None:
            self.group.resume(self.kept, self.now)

    @rule(who=WHO, lost=st.booleans())
    def call(self, who: int, lost: bool) -> None:
        reader = self.readers[who]
        self._beat(reader, reader.epoch, lost=lost and reader.epoch > 0)

    @rule(who=WHO)
    def let_go(self, who: int) -> None:
        self.readers[who].let_go()

    @rule(who=WHO, names=st.sampled_from(NAMES))
    def want(self, who: int, names: frozenset[str]) -> None:
        self.readers[who].names = names
        self.readers[who].says_all = True

    @precondition(lambda self: self.group.in_use)
    @rule(who=WHO)
    def leave(self, who: int) -> None:
        reader = self.readers[who]
        if reader.epoch:
            reader.reads = set()
            self._beat(reader, LEAVE)
            reader.epoch, reader.results, reader.says_all = 0, frozenset(), True

    @rule(who=st.integers(0, 1))
    def restart(self, who: int) -> None:
        """A static member goes for a while, and comes back under another id."""
        reader = self.readers[who]
        if reader.epoch:
            reader.reads = set()
            self._beat(reader, LEAVE_FOR_NOW)
            self.generations += 1
            names, self.readers[who] = reader.names, Reader(f"x{self.generations}", f"i{who}")
            self.readers[who].names = names

    @rule(size=st.integers(0, 6), topic=st.sampled_from([A, B]))
    def resize(self, size: int, topic: bytes) -> None:
        self.sizes[topic] = size

    @rule(seconds=st.sampled_from([1.0, 15.0, 50.0]), kept=st.booleans())
    def wait(self, seconds: float, kept: bool) -> None:
        self.now += seconds
        if self.group.due <= self.now:
            self.group.tick(self.now)
        if kept:
            self._keep()

    @invariant()
    def nothing_is_read_twice(self) -> None:
        reading = [
            partition
            for reader in self.everybody()
            if reader.id in self.group.members
            for partition in reader.reads
        ]
        assert len(set(reading)) == len(reading)

    @invariant()
    def nothing_is_read_that_is_thought_free(self) -> None:
        for reader in self.everybody():
            member = self.group.members.get(reader.id)
            assert member is None or reader.reads <= member.assigned | member.revoking

    @invariant()
    def the_books_are_right(self) -> None:
        group = self.group
        held = {
            partition: one
            for one in group.members.values()
            for partition in one.assigned | one.revoking
        }
        assert held == group._owners
        assert all(one.epoch <= group.epoch for one in group.members.values())
        assert set(group.targets) == set(group.members)
        assert 0 <= self.memory.used_bytes <= self.memory.bytes_max

    def everybody(self) -> list[Reader]:
        return self.readers

    def settle(self) -> None:
        """Everybody does what it is told, once."""
        for reader in self.readers:
            reader.let_go()
            self._beat(reader, reader.epoch)

    def teardown(self) -> None:
        for _ in range(8):
            self.settle()
        assert self.group.state is ConsumerState.STABLE
        everything = sorted(partition for reader in self.everybody() for partition in reader.reads)
        expected = {A for reader in self.everybody() if "a" in reader.names}
        expected |= {B for reader in self.everybody() if "b" in reader.names}
        assert everything == [(t, n) for t in sorted(expected) for n in range(self.sizes[t])]
        self.group.die()
        assert self.memory.used_bytes == 0


TestReaders = Readers.TestCase
TestReaders.settings = settings(max_examples=200, stateful_step_count=40)
