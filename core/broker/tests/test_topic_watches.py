"""Who watches a pattern has the list of what matches, whatever comes and goes."""

from collections.abc import Callable, Sequence

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.broker import administration, topic_watches
from magnetar.core.broker.broker import Broker
from magnetar.core.broker.topic_watches import names_hash
from magnetar.core.kernel.errors import Invalid, NotAllowed
from magnetar.core.kernel.names import MANAGED_LEDGERS, NamespaceName, TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.turns import counted_turns

DEFAULT = NamespaceName.parse("public/default")


class Listener:
    """A watcher that applies what it is told."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.digest = ""
        self.is_dropped = False
        self.calls = 0

    def changed(self, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        assert not self.names & set(new)
        assert self.names >= set(gone)
        self.names = (self.names | set(new)) - set(gone)
        self.digest = digest
        assert digest == names_hash(sorted(self.names))
        self.calls += 1

    def dropped(self) -> None:
        self.is_dropped = True

    async def watch(self, broker: Broker, pattern: str) -> topic_watches.MatchingTopics:
        found = await broker.topic_watches.watch(DEFAULT, pattern, self)
        self.names, self.digest = set(found.names), found.digest
        return found


def topic(name: str) -> TopicName:
    return TopicName.parse(name)


def full(*names: str) -> set[str]:
    return {TopicName.parse(name).full for name in names}


async def told() -> None:
    """After the next round; on the clock of a test, rests take no time."""
    await settled()
    await settled()


async def test_topics_come_and_go(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as broker:
        await broker.topic(topic("a1"))
        await broker.topic(topic("b1"))
        await broker.topic(topic("non-persistent://public/default/a0"))
        listener = Listener()
        await listener.watch(broker, "public/default/a.*")
        assert listener.names == full("a1")
        await broker.topic(topic("a2"))
        await broker.topic(topic("b2"))
        await broker.topic(topic("public/default/__a"))
        await broker.topic(topic("non-persistent://public/default/a3"))
        await trio.sleep(1)
        assert listener.names == full("a1", "a2")
        await broker.delete(topic("a1"), force=True)
        await trio.sleep(1)
        assert listener.names == full("a2")


async def test_partitions_are_told_one_by_one(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as broker:
        listener = Listener()
        await listener.watch(broker, "public/default/p")
        await administration.create_partitioned(broker, topic("p"), 2)
        await trio.sleep(1)
        assert listener.names == full("p-partition-0", "p-partition-1")
        await broker.catalog.grow_partitioned(topic("p"), 4)  # these have no log yet
        await trio.sleep(1)
        assert listener.names == full(*[f"p-partition-{index}" for index in range(4)])
        await administration.delete_partitioned(broker, topic("p"), force=True)
        await trio.sleep(1)
        assert listener.names == set()


async def test_many_changes_are_told_together(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as broker:
        listener = Listener()
        await listener.watch(broker, ".*")
        for index in range(50):
            await broker.catalog.create_partitioned(topic(f"t{index}"), 1)
        await trio.sleep(1)
        assert len(listener.names) == 50
        assert listener.calls < 50


async def test_a_pattern_is_matched_once_for_all_who_watch_it() -> None:
    async with running() as broker:
        first, second = Listener(), Listener()
        found = await first.watch(broker, ".*")
        assert await second.watch(broker, ".*") is found
        broker.topic_watches.end(found, first)
        broker.topic_watches.end(found, first)
        assert broker.topic_watches.watchers == 1
        broker.topic_watches.end(found, second)
        assert (broker.topic_watches.watchers, broker.topic_watches.size) == (0, 0)


async def test_a_list_is_whole_although_topics_come_while_it_is_made() -> None:
    async with running() as broker:
        for index in range(300):
            await broker.catalog.create_partitioned(topic(f"t{index}"), 1)
        listeners = [Listener() for _ in range(3)]
        async with trio.open_nursery() as nursery:
            for number, listener in enumerate(listeners):
                nursery.start_soon(listener.watch, broker, "public/default/t.*" + "0?" * number)
            for index in range(300, 320):
                await broker.catalog.create_partitioned(topic(f"t{index}"), 1)
        with trio.fail_after(5):
            while any(len(listener.names) < 320 for listener in listeners):
                await told()
        for listener in listeners:
            assert listener.digest == names_hash(sorted(listener.names))


async def test_what_another_broker_creates(autojump_clock: trio.testing.MockClock) -> None:
    stores = Stores()
    async with running(stores) as broker, running(stores) as other:
        listener = Listener()
        await listener.watch(broker, ".*")
        await other.topic(topic("theirs"))
        await trio.sleep(1)
        assert listener.names == full("theirs")


async def test_a_report_of_the_root_stands_for_everything(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as broker:
        listener = Listener()
        await broker.topic(topic("a"))
        await listener.watch(broker, ".*")
        broker.metadata._watches.clear()  # type: ignore[attr-defined]  # nobody hears of these
        await broker.topic(topic("b"))
        await broker.delete(topic("a"), force=True)
        broker.topic_watches._note(MANAGED_LEDGERS)
        await trio.sleep(1)
        assert listener.names == full("b")


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=x)"])
async def test_a_pattern_that_is_not_understood(pattern: str) -> None:
    async with running() as broker:
        with pytest.raises(Invalid):
            await Listener().watch(broker, pattern)
        assert not broker.topic_watches._namespaces


async def test_limits(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(topic_watches, "WATCHERS_MAX", 2)
    monkeypatch.setattr(topic_watches, "PATTERNS_MAX", 2)
    monkeypatch.setattr(topic_watches, "NAMES_MAX", 10)
    async with running() as broker:
        first, second = Listener(), Listener()
        await first.watch(broker, "public/default/a.*")
        found = await second.watch(broker, "public/default/b.*")
        for pattern in ("x", "public/default/a.*"):
            with pytest.raises(NotAllowed):
                await Listener().watch(broker, pattern)
        assert broker.topic_watches.watchers == 2
        broker.topic_watches.end(found, second)
        await broker.catalog.create_partitioned(topic("a"), 12)
        await trio.sleep(1)
        assert first.is_dropped
        assert broker.topic_watches.size == 0
        await Listener().watch(broker, "x")
        with pytest.raises(NotAllowed):
            await Listener().watch(broker, "public/default/a.*")
        assert broker.topic_watches.watchers == 1


async def test_a_pattern_of_many_states_is_not_watched() -> None:
    async with running() as broker:
        for pattern in ("(.?){150}a", "(a?b?){200}"):
            with pytest.raises(Invalid):
                await Listener().watch(broker, pattern)
        await Listener().watch(broker, "a" * 250)


async def test_others_run_while_a_name_is_matched_with_many_patterns() -> None:
    watched = topic_watches.WatchedNamespace(DEFAULT)
    for index in range(12):
        pattern = f"(.?){{{130 + index}}}a"
        watched.patterns[pattern] = topic_watches.MatchingTopics(watched, pattern)
    async with counted_turns() as turns:
        await watched.note_log(topic("b" * 200), True)
        assert turns.count >= 3


class SlowListener(Listener):
    """One that takes long to be told; `meanwhile` is called then."""

    def __init__(self, clock: trio.testing.MockClock, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._clock = clock
        self._meanwhile = meanwhile

    def changed(self, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        super().changed(new, gone, digest)
        self._clock.jump(topic_watches.REST_SECONDS_MAX)
        self._meanwhile()


async def test_a_rest_is_as_long_as_the_work(autojump_clock: trio.testing.MockClock) -> None:
    """A round that took a second since others had the machine is not followed by a rest of one."""
    async with running() as broker:
        listener = SlowListener(autojump_clock, lambda: None)
        await listener.watch(broker, ".*")
        await broker.topic(topic("a"))
        await settled()
        assert listener.names == full("a")
        await broker.topic(topic("b"))
        await trio.sleep(0.01)
        assert listener.names == full("a", "b")


async def test_others_run_while_watchers_are_told(autojump_clock: trio.testing.MockClock) -> None:
    """Who has come, or asked for its list again, in the middle of it hears nothing twice."""
    listeners: list[SlowListener] = []
    newcomer, again = Listener(), trio.Event()
    async with running() as broker, trio.open_nursery() as nursery:

        async def ask_again() -> None:
            await found.tell()
            for each in listeners:
                each.names = set(found.names)
            await newcomer.watch(broker, ".*")
            again.set()

        def meanwhile() -> None:
            if sum(each.calls for each in listeners) == 1:
                nursery.start_soon(ask_again)

        for _ in range(5):
            listeners.append(SlowListener(autojump_clock, meanwhile))
            found = await listeners[-1].watch(broker, ".*")
        async with counted_turns() as turns:
            async with found.namespace.lock:
                await found.namespace.note_log(topic("a"), True)
            await found.tell()
            assert turns.count >= len(listeners) - 1
        await again.wait()
        async with found.namespace.lock:
            await found.namespace.note_log(topic("a"), False)
            await found.namespace.note_log(topic("b"), True)
        await found.tell()
        for each in (*listeners, newcomer):
            assert each.names == full("b")


async def test_a_pattern_that_is_dropped_while_it_is_listed() -> None:
    async with running() as broker:
        await Listener().watch(broker, "x")
        (watched,) = broker.topic_watches._namespaces.values()

        async def refused() -> None:
            with pytest.raises(NotAllowed):
                await Listener().watch(broker, ".*")

        async with trio.open_nursery() as nursery, watched.lock:
            nursery.start_soon(refused)
            await settled()
            watched.patterns[".*"].note(topic("a"), True)
            await broker.topic_watches._drop_largest()
        assert broker.topic_watches.watchers == 1


async def test_a_record_with_a_strange_name(autojump_clock: trio.testing.MockClock) -> None:
    """Once nothing of its namespace was listed, and it was read again for ever."""
    async with running() as broker:
        await broker.topic(topic("a"))
        await broker.metadata.put("/managed-ledgers/public/default/persistent/", b"", -1)
        listener = Listener()
        await listener.watch(broker, ".*")
        assert listener.names == full("a")
        broker.topic_watches._note(MANAGED_LEDGERS)
        await trio.sleep(1)
        assert not broker.topic_watches._stale


CHANGES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "p", "q", "p-partition-1"]), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(CHANGES)
def test_any_sequence_of_changes(changes: list[tuple[str, int]]) -> None:
    async def play() -> None:
        async with running() as broker:
            listeners = [Listener(), Listener()]
            await listeners[0].watch(broker, "public/default/[ap]")
            for at, (name, count) in enumerate(changes):
                if at == len(changes) // 2:
                    await listeners[1].watch(broker, "public/default/[ap]")
                path = f"/managed-ledgers/{topic(name).managed_ledger}"
                found = await broker.metadata.get(path)
                if name in "pq":
                    held = await broker.catalog.partitions(topic(name))
                    if count > held:
                        change = broker.catalog.grow_partitioned
                        await (change if held else broker.catalog.create_partitioned)(
                            topic(name), count
                        )
                    elif held:
                        await broker.catalog.forget_topic(topic(name))
                elif found is None:
                    await broker.metadata.put(path, b"", -1)
                else:
                    await broker.metadata.delete(path, found.version)
                if count == 3:
                    await trio.sleep(0.1)
            await trio.sleep(5)
            present = {
                name.full
                for name in [topic("a"), topic("p-partition-1")]
                if await broker.exists(name)
            }
            held = await broker.catalog.partitions(topic("p"))
            present |= full(*[f"p-partition-{index}" for index in range(held)])
            assert listeners[0].names == present
            if changes:
                assert listeners[1].names == present

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))
