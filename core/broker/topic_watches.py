"""Topics of a namespace whose names match a pattern: a list, and then each change of it.

    WatchedNamespace    the names of all topics, as the metadata store has them
    MatchingTopics      of these, the ones that match one pattern; shared by all who watch it
    TopicWatcher        somebody who has the list, and is told of changes

A namespace is listed when somebody begins to watch it. From then on the store reports changes;
they are read in rounds, so that what many changes have in common is done once. After a round that
took long, the next one waits (`REST_FACTOR`), so ten thousand new topics do not take the loop.
Without a change, and for namespaces that nobody watches, nothing is done.

A name is matched with one pattern after the other, and one watcher is told after the other, with
rests in between. What keeps this in order: the names of a namespace change only under its lock, so
a pattern is listed before or after a change, not during it; and the watchers of a pattern are told
under a lock of the pattern, which a new one takes, too: it is there for all of a change, or not.

Invariants: a watcher that applies each change to the list it was given has what matches now, or did
at the end of the last round. Names, patterns and watchers of all connections together are limited;
a pattern whose watchers would exceed the limit is dropped, and they are told so.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

import trio

from magnetar.core.broker.catalog import PARTITIONED
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError, Invalid, InvalidName, NotAllowed
from magnetar.core.kernel.names import MANAGED_LEDGERS, NamespaceName, TopicName, partition_name
from magnetar.core.patterns.automaton import Automaton
from magnetar.core.patterns.patterns import BadPattern, compiled

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker

log = logging.getLogger(__name__)

WATCHERS_MAX: Final = 10_000
PATTERNS_MAX: Final = 256
"""Watched patterns of all namespaces; each takes up to a megabyte."""
LETTERS_MAX: Final = 250
"""Of a watched pattern. Apache's broker accepts 50 (`subscriptionPatternMaxLength`); beyond it
clients poll.
"""
STATES_MAX: Final = 600
"""Of a watched pattern: to match a long name takes up to 15 ms. As many letters as it may have need
fewer, unless they are counted repetitions.
"""
NAMES_MAX: Final = 2_000_000
"""Names in all watched namespaces, and entries of all lists of matching ones."""
REST_FACTOR: Final = 4
"""After a round of work, the next one waits for so many times its length."""
REST_SECONDS_MAX: Final = 1.0
STEP_SECONDS: Final = 1e-7
"""The most that a letter of a name takes for each state of a pattern. Rests are no longer than that
makes them: on a busy machine a round takes long by the clock, and has not taken the loop.
"""
RETRY_SECONDS: Final = 1.0


def names_hash(names: Sequence[str]) -> str:
    """The hash by which clients see whether a list has changed: CRC32C in little-endian order, of
    the sorted names (`topics/TopicList.java`).
    """
    return crc32c(",".join(names).encode()).to_bytes(4, "little").hex()


def watchable(pattern: str) -> Automaton:
    """A pattern, ready to be matched; `Invalid` if nobody can watch it."""
    if len(pattern) > LETTERS_MAX:
        raise Invalid(f"Pattern longer than maximum: {LETTERS_MAX}")
    try:
        found = compiled(pattern)
    except BadPattern as error:
        raise Invalid(f"the pattern is not understood: {error}") from error
    if found.size > STATES_MAX:
        raise Invalid(f"a pattern that is watched has at most {STATES_MAX} states")
    return found


class TopicWatcher(Protocol):
    """Somebody who watches a pattern. Plain calls, which do not raise."""

    def changed(self, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        """These match now, and these do no more; the digest is that of the whole list."""
        ...

    def dropped(self) -> None:
        """It is told of nothing any more: there are too many topics."""
        ...


class MatchingTopics:
    """See the module's docstring."""

    def __init__(self, namespace: WatchedNamespace, pattern: str) -> None:
        self._automaton = watchable(pattern)
        self.namespace = namespace
        self.pattern = pattern
        self.names: list[str] = []
        """Sorted."""
        self.watchers: set[TopicWatcher] = set()
        self.users = 0
        """Watchers, and those who will be when the list is made."""
        self.listed = trio.Event()
        self._digest = ""
        """Empty if it is to be computed."""
        self._changes: dict[str, bool] = {}
        """Names that have come (True) or gone since the watchers were told."""
        self._telling = trio.Lock()
        self._last = ("", False)
        """A topic and whether it matches: all its partitions do."""

    @property
    def states(self) -> int:
        """How many its automaton has."""
        return self._automaton.size

    def matches(self, base: str) -> bool:
        """Whether a topic matches, by its name without a partition."""
        if self._last[0] != base:
            self._last = base, self._automaton.matches(base.partition("://")[2])
        return self._last[1]

    def note(self, name: TopicName, present: bool) -> None:
        """A topic or a partition has come or gone."""
        base = name.full if not name.partitioned else name.full[: name.full.rindex("-partition-")]
        if not self.matches(base):
            return
        at = bisect_left(self.names, name.full)
        if (at < len(self.names) and self.names[at] == name.full) is present:
            return
        self._digest = ""
        if present:
            self.names.insert(at, name.full)
        else:
            del self.names[at]
        if self._changes.get(name.full, present) is not present:
            del self._changes[name.full]
        else:
            self._changes[name.full] = present

    def is_changed(self) -> bool:
        return bool(self._changes)

    @property
    def digest(self) -> str:
        if not self._digest:
            self._digest = names_hash(self.names)
        return self._digest

    async def tell(self, like: MatchingTopics | None = None) -> None:
        """Tell all watchers what has changed. When this returns there is no change that any of them
        has not been told, until the caller awaits something.

        `like` is one that was told before: often patterns match the same, and to compare ten
        thousand names takes a tenth of hashing them.
        """
        async with self._telling:
            while self._changes:
                changes, self._changes = self._changes, {}
                if not self.watchers:
                    continue
                new = [name for name, present in changes.items() if present]
                gone = [name for name, present in changes.items() if not present]
                if like is not None and like.names == self.names:
                    self._digest = like.digest
                digest = self.digest
                async for watcher in Cooperative(list(self.watchers)):
                    if watcher in self.watchers:
                        watcher.changed(new, gone, digest)

    async def let_go(self) -> None:
        """Tell all watchers that they are told nothing more."""
        async for watcher in Cooperative(list(self.watchers)):
            if watcher in self.watchers:
                self.watchers.remove(watcher)
                self.users -= 1
                watcher.dropped()


class WatchedNamespace:
    """See the module's docstring."""

    def __init__(self, name: NamespaceName) -> None:
        self.name = name
        self.stored: dict[str, TopicName] = {}
        """Topics and partitions that have a log."""
        self.partitions: dict[str, int] = {}
        """Of each partitioned topic."""
        self.patterns: dict[str, MatchingTopics] = {}
        self.steps = 0
        """Letters that were matched, times the states of each pattern."""
        self.lock = trio.Lock()
        """Held while the namespace is listed."""
        self.is_listed = False

    @property
    def size(self) -> int:
        return len(self.stored) + sum(len(each.names) for each in self.patterns.values())

    def has(self, name: TopicName) -> bool:
        """Whether a topic or partition exists: a partition also without a log."""
        if name.full in self.stored:
            return True
        return name.partitioned and name.partition_index < self.partitions.get(name.base.full, 0)

    async def note_log(self, name: TopicName, stored: bool) -> None:
        """A log was stored, or removed."""
        before = self.has(name)
        if stored:
            self.stored[name.full] = name
        else:
            self.stored.pop(name.full, None)
        if self.has(name) is not before:
            await self._note(name, not before)

    async def note_partitions(self, base: TopicName, count: int) -> None:
        """A partitioned topic was created, has grown, or was deleted."""
        before = self.partitions.pop(base.full, 0)
        if count:
            self.partitions[base.full] = count
        low, high = sorted((before, count))
        async for index in Cooperative(range(low, high)):
            if partition_name(base.full, index) not in self.stored:
                await self._note(base.partition(index), count > before)

    async def _note(self, name: TopicName, present: bool) -> None:
        async for pattern in Cooperative(list(self.patterns.values())):
            self.steps += pattern.states * len(name.full)
            pattern.note(name, present)

    async def names(self) -> list[TopicName]:
        """All topics and partitions."""
        found = dict(self.stored)
        for full, count in list(self.partitions.items()):
            base = TopicName.parse(full)
            async for index in Cooperative(range(count)):
                name = base.partition(index)
                found[name.full] = name
        return list(found.values())


class TopicWatches:
    """All watched namespaces of a broker. See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._namespaces: dict[NamespaceName, WatchedNamespace] = {}
        self._stale: dict[tuple[NamespaceName, str, str], None] = {}
        """Records to be read again: namespace, root and topic; all of a namespace for no topic."""
        self._noted = trio.Event()
        self._follows = False

    @property
    def watchers(self) -> int:
        return sum(len(each.watchers) for each in self._patterns())

    def _patterns(self) -> list[MatchingTopics]:
        return [one for each in self._namespaces.values() for one in each.patterns.values()]

    @property
    def size(self) -> int:
        """Names and entries of lists, of all namespaces."""
        return sum(each.size for each in self._namespaces.values())

    @property
    def _steps(self) -> int:
        return sum(each.steps for each in self._namespaces.values())

    # -- watchers -----------------------------------------------------------------------------

    async def watch(
        self, namespace: NamespaceName, pattern: str, watcher: TopicWatcher
    ) -> MatchingTopics:
        """Watch a pattern; its `names` are those when this returns. `NotAllowed` beyond a limit.

        The pattern is matched with a topic's name without its domain and its partition.
        """
        self._follow()
        watched = self._namespaces.get(namespace)
        if watched is None:
            watched = WatchedNamespace(namespace)
        found = watched.patterns.get(pattern)
        if found is None:
            if len(self._patterns()) >= PATTERNS_MAX:
                raise NotAllowed("too many patterns of topics are watched")
            found = MatchingTopics(watched, pattern)
            watched.patterns[pattern] = found
            self._namespaces[namespace] = watched
        found.users += 1
        try:
            if not found.listed.is_set():
                await self._list(watched, found)
            await found.tell()  # those who have an older list
            if watched.patterns.get(pattern) is not found:  # it was dropped meanwhile
                raise NotAllowed("too many topics are watched")
            if self.watchers >= WATCHERS_MAX:
                raise NotAllowed("too many patterns of topics are watched")
            if self.size > NAMES_MAX:
                raise NotAllowed("too many topics are watched")
            found.watchers.add(watcher)
        except BaseException:
            self._leave(found)
            raise
        return found

    def end(self, matching: MatchingTopics, watcher: TopicWatcher) -> None:
        """Tell it no more."""
        if watcher in matching.watchers:
            matching.watchers.remove(watcher)
            self._leave(matching)

    def _leave(self, matching: MatchingTopics) -> None:
        matching.users -= 1
        if not matching.users:
            self._drop(matching)

    def _drop(self, matching: MatchingTopics) -> None:
        watched = matching.namespace
        if watched.patterns.get(matching.pattern) is matching:
            del watched.patterns[matching.pattern]
        if not watched.patterns and self._namespaces.get(watched.name) is watched:
            del self._namespaces[watched.name]

    async def _list(self, watched: WatchedNamespace, matching: MatchingTopics) -> None:
        async with watched.lock:
            if not watched.is_listed:
                await self._read_all(watched)
                watched.is_listed = True
            if matching.listed.is_set():
                return
            # what changes meanwhile is noted by the pattern itself
            async for name in Cooperative(await watched.names()):
                if watched.has(name):
                    matching.note(name, True)
            matching.listed.set()

    # -- changes ------------------------------------------------------------------------------

    def _follow(self) -> None:
        if not self._follows:
            self._follows = True
            for root in (MANAGED_LEDGERS, PARTITIONED):
                self._broker.metadata.watch(root, self._note)
            self._broker.spawn(self._run)

    def _note(self, path: str) -> None:
        """A path has changed. Plain call for each change of a topic's record, or of its cursors."""
        if not self._namespaces:
            return
        root = MANAGED_LEDGERS if path.startswith(MANAGED_LEDGERS) else PARTITIONED
        steps = path[len(root) :].split("/")[1:]
        if len(steps) > 4:
            return  # a cursor
        if len(steps) < 4:  # anything below may have changed: the port joins reports
            for name in self._namespaces:
                self._stale[name, root, ""] = None
        elif steps[2] == "persistent":
            try:
                namespace = NamespaceName.parse(f"{steps[0]}/{steps[1]}")
            except InvalidName:
                return
            if namespace not in self._namespaces:
                return
            self._stale[namespace, root, steps[3]] = None
        self._noted.set()

    async def _run(self) -> None:
        """Read what changes and tell the watchers, until cancelled."""
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            began, before = trio.current_time(), self._steps
            try:
                await self._round()
            except BrokerError as error:
                log.warning("changes of topics are not told, storage is asked again: %s", error)
                await trio.sleep(RETRY_SECONDS)
                self._noted.set()
                continue
            most = max(self._steps - before, 0) * STEP_SECONDS
            took = min(trio.current_time() - began, most)
            await trio.sleep(min(took * REST_FACTOR, REST_SECONDS_MAX))

    async def _round(self) -> None:
        while self._stale:
            key = next(iter(self._stale))
            del self._stale[key]
            try:
                await self._read(*key)
            except BaseException:
                self._stale[key] = None
                raise
        told: MatchingTopics | None = None
        async for pattern in Cooperative(self._patterns()):
            if pattern.is_changed():
                await pattern.tell(told)
                told = pattern
        if self.size > NAMES_MAX:
            await self._drop_largest()

    async def _read(self, namespace: NamespaceName, root: str, encoded: str) -> None:
        watched = self._namespaces.get(namespace)
        if watched is None:
            return
        async with watched.lock:
            if not watched.is_listed:
                return  # it will be
            if not encoded:
                await self._read_all(watched)
                return
            await self._read_one(watched, root, encoded)

    async def _read_one(self, watched: WatchedNamespace, root: str, encoded: str) -> None:
        name = _listed(watched.name, encoded)
        if name is None:
            return
        if root == MANAGED_LEDGERS:
            found = await self._broker.metadata.get(f"{MANAGED_LEDGERS}/{name.managed_ledger}")
            await watched.note_log(name, found is not None)
        else:
            await watched.note_partitions(name, await self._broker.catalog.partitions(name))

    async def _read_all(self, watched: WatchedNamespace) -> None:
        """Compare with all records of the namespace."""
        found = await self._broker.metadata.children(watched.name.managed_ledgers)
        present: set[str] = set()
        async for encoded in Cooperative(found):
            name = _listed(watched.name, encoded)
            if name is not None:
                present.add(name.full)
                await watched.note_log(name, True)
        async for name in Cooperative(list(watched.stored.values())):
            if name.full not in present:
                await watched.note_log(name, False)
        partitioned = await self._broker.catalog.partitioned_of(watched.name)
        for name in [TopicName.parse(full) for full in watched.partitions]:
            if name not in partitioned:
                await watched.note_partitions(name, 0)
        for name, count in partitioned.items():
            if name.persistent and not name.system:
                await watched.note_partitions(name, count)

    async def _drop_largest(self) -> None:
        largest = max(self._patterns(), key=lambda each: len(each.names))
        log.warning("%s: too many topics to watch", largest.namespace.name)
        self._drop(largest)
        await largest.let_go()


def _listed(namespace: NamespaceName, encoded: str) -> TopicName | None:
    """The topic of a record; None for one that is not listed, or whose name is none."""
    try:
        name = TopicName.of_managed_ledger(f"{namespace}/persistent/{encoded}")
    except InvalidName:
        return None
    return None if name.system else name
