"""A metadata store in virtual time, as ZooKeeper is to clients that are far away.

Each client has a session. What may go wrong with a call: it takes long; it never arrives; it is
carried out and the answer is lost, so that the client gets `StorageFailed` and does not know; it is
carried out long after that. And a session reads from a server that is behind the others:

    reads     give what the server has seen so far, which is never less than before
    writes    are done by the leader, and the server has seen all that came before when it answers
    watches   report a change when the server has seen it
    leases    end when the session does: `lost` first, then the paths; a client that is frozen hears
              of it when it goes on

Invariant: writes happen one after the other, each over the version that it names; whatever is lost.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final, TypeVar

import trio
from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError, StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import PutDone, Versioned
from magnetar.core.testing.simulation.timeline import HostTimeline, Timeline
from magnetar.core.testing.simulation.virtual_network import Luck

Result = TypeVar("Result")
SESSION_SECONDS: Final = 2.0
"""After so long without its client a session ends."""


class MetadataWeather(Struct):
    """How bad the store is now."""

    seconds: float = 0.002
    """What one way takes on the average."""
    lost: float = 0.0
    """How often a call never arrives."""
    unsure: float = 0.0
    """How often the answer to a call is lost."""
    lag_seconds: float = 0.0
    """How far servers may be behind."""
    timeout_seconds: float = 3.0
    """How long a client waits for an answer."""


class MetadataService:
    """All servers together; see the module's docstring."""

    def __init__(self, timeline: Timeline, chance: Luck) -> None:
        self.weather = MetadataWeather()
        self.writer = ""
        """Whose call is carried out."""
        self.chance = chance
        self.timeline = timeline
        self.truth = MemoryMetadata()
        self.times: list[float] = []
        """When each change was made; the number of a change is its place."""
        self.paths: list[str] = []
        self._histories: dict[str, tuple[list[int], list[Versioned | None]]] = {}
        """Of each path: the numbers of its changes, and its values since."""
        self._stalled = False
        self._waiting: list[Callable[[], None]] = []
        self._sessions: list[MetadataSession] = []
        self._numbers = count()
        self._holders: dict[str, int] = {}
        """The number of the lease that each path is, of those that are leases."""
        self.on_change: Callable[[str, Versioned | None, Versioned | None], None] = _ignore
        """Called with the path, the former value and the new one."""
        self.truth.watch("", self._changed)

    def session(self, name: str, host: HostTimeline) -> MetadataSession:
        """A new session of a client on a host."""
        session = MetadataSession(self, name, host)
        self._sessions.append(session)
        return session

    def latency(self) -> float:
        return self.chance.expovariate(1 / self.weather.seconds)

    def stall(self) -> None:
        """Carry out nothing until `go_on`."""
        self._stalled = True

    def go_on(self) -> None:
        self._stalled = False
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def carry_out(self, call: Callable[[], None]) -> None:
        """Make a call of a client, now or when the store goes on."""
        if self._stalled:
            self._waiting.append(call)
        else:
            call()

    async def lease(self, path: str, value: bytes) -> int:
        """Create a path that goes with `end_lease`; the number of the lease."""
        await self.truth.put(path, value, -1)
        number = self._holders[path] = next(self._numbers)
        return number

    def end_lease(self, path: str, number: int) -> None:
        """Delete the path, unless it is another lease by now, or none."""
        if self._holders.get(path) == number:
            found = at_once(self.truth.get(path))
            assert found is not None, "a lease without its path"
            at_once(self.truth.delete(path, found.version))

    def _changed(self, path: str) -> None:
        found = at_once(self.truth.get(path))
        if found is None:
            self._holders.pop(path, None)
        numbers, values = self._histories.setdefault(path, ([-1], [None]))
        before = values[-1]
        numbers.append(len(self.times))
        values.append(found)
        self.times.append(trio.current_time())
        self.paths.append(path)
        self.on_change(path, before, found)
        for session in self._sessions:
            session.hear(len(self.times), path)

    def seen(self, path: str, count: int) -> Versioned | None:
        """The value of a path after so many changes."""
        numbers, values = self._histories.get(path, ([-1], [None]))
        return values[bisect_right(numbers, count - 1) - 1]

    def paths_below(self, start: str, count: int) -> list[str]:
        return [
            path
            for path in self._histories
            if path.startswith(start) and self.seen(path, count) is not None
        ]


class MetadataSession:
    """A `MetadataStore` for one client."""

    def __init__(self, service: MetadataService, name: str, host: HostTimeline) -> None:
        self.name = name
        self._service = service
        self._host = host
        self._count = 0
        """How many changes its server has seen."""
        self._leases: dict[str, tuple[int, Callable[[], None]]] = {}
        """Their numbers, and who hears when they are lost."""
        self._watches: dict[int, tuple[str, Callable[[str], None]]] = {}
        self._number = 0
        self._ended = False
        self.expired_at = -math.inf
        """When the last session before this one ended."""

    # -- what the server has seen --------------------------------------------------------------

    def _advance(self) -> None:
        """The server may have seen more, and has seen what is older than the lag."""
        service = self._service
        oldest = trio.current_time() - service.weather.lag_seconds
        self._count = max(self._count, bisect_right(service.times, oldest))
        behind = len(service.times) - self._count
        self._count += service.chance.randrange(behind + 1)

    def hear(self, count: int, path: str) -> None:
        """There is one more change: it is reported in a while to those who watch."""
        if not self._ended and any(_covers(prefix, path) for prefix, _ in self._watches.values()):
            delay = self._service.latency() + self._service.weather.lag_seconds / 2
            self._host.call_in(delay, self._report, count, path)

    def _report(self, count: int, path: str) -> None:
        self._count = max(self._count, count)
        for prefix, changed in list(self._watches.values()):
            if _covers(prefix, path):
                changed(path)

    # -- calls --------------------------------------------------------------------------------

    async def _ask(
        self, call: Callable[[], Coroutine[Any, Any, Result]], what: str, *, sure: bool = False
    ) -> Result:
        """Have a call carried out by the store; `StorageFailed` if nobody knows whether it was."""
        service, weather = self._service, self._service.weather
        answers: list[Result | BrokerError] = []
        over = trio.Event()
        unsure = service.chance.random() < weather.unsure and not sure

        def arrive() -> None:
            service.carry_out(carry_out)

        def carry_out() -> None:
            answer: Result | BrokerError
            service.writer = self.name
            try:
                answer = at_once(call())
            except BrokerError as error:
                answer = error
            if not unsure:
                self._host.call_in(service.latency(), take, answer)

        def take(answer: Result | BrokerError) -> None:
            answers.append(answer)
            over.set()

        if (service.chance.random() >= weather.lost or sure) and not self._ended:
            self._host.call_in(service.latency(), arrive)
        with trio.move_on_after(math.inf if sure and not self._ended else weather.timeout_seconds):
            await over.wait()
        if not answers:
            raise StorageFailed(f"{what}: no answer")
        answer = answers[0]
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    async def _write(
        self, call: Callable[[], Coroutine[Any, Any, Result]], what: str, *, sure: bool = False
    ) -> Result:
        async def written() -> Result:
            try:
                return await call()
            finally:
                self._count = len(self._service.times)

        return await self._ask(written, what, sure=sure)

    async def get(self, path: str) -> Versioned | None:
        async def read() -> Versioned | None:
            self._advance()
            return self._service.seen(path, self._count)

        return await self._ask(read, path)

    async def put(self, path: str, value: bytes, expected: int) -> int:
        truth = self._service.truth
        return await self._write(lambda: truth.put(path, value, expected), path)

    @property
    def puts_at_once(self) -> bool:
        return False

    def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
        del path, value, expected, done
        return False  # a write takes time

    async def delete(self, path: str, expected: int) -> None:
        async def remove() -> None:
            await self._service.truth.delete(path, expected)
            self._leases.pop(path, None)

        await self._write(remove, path)

    async def children(self, path: str) -> list[str]:
        async def read() -> list[str]:
            self._advance()
            start = path.rstrip("/") + "/"
            found = self._service.paths_below(start, self._count)
            return sorted({each[len(start) :].partition("/")[0] for each in found})

        return await self._ask(read, path)

    async def lease(self, path: str, value: bytes, lost: Callable[[], None]) -> None:
        async def take() -> None:
            number = await self._service.lease(path, value)
            if self._ended:
                end = self._service.end_lease
                self._service.timeline.call_in(SESSION_SECONDS, end, path, number)
            else:
                self._leases[path] = number, lost

        await self._write(take, path, sure=True)

    async def next(self, path: str) -> int:
        return await self._write(lambda: self._service.truth.next(path), path)

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Callable[[], None]:
        self._number += 1
        number = self._number
        self._watches[number] = (prefix, changed)
        return lambda: self._watches.pop(number, None) and None

    async def sync(self) -> None:
        async def catch_up() -> None:
            self._count = len(self._service.times)

        await self._ask(catch_up, "sync")

    # -- the session --------------------------------------------------------------------------

    def expire(self) -> None:
        """The session is over; its client goes on with another one, and looks at all it watches."""
        self.expired_at = trio.current_time()
        leases, self._leases = self._leases, {}
        for _, lost in leases.values():
            if self._host.is_frozen:
                self._host.call_in(0.0, lost)
            else:
                lost()
        self._service.timeline.call_in(self._service.latency(), self._end_leases, leases)
        self._host.call_in(2 * self._service.latency(), self._look_at_all)

    def _look_at_all(self) -> None:
        for prefix, changed in list(self._watches.values()):
            changed(prefix)

    def end(self) -> None:
        """Its client is gone: what it has sent is still carried out, and leases end in a while."""
        self._ended = True
        self._watches.clear()
        leases, self._leases = self._leases, {}
        self._service.timeline.call_in(SESSION_SECONDS, self._end_leases, leases)

    def _end_leases(self, leases: dict[str, tuple[int, Callable[[], None]]]) -> None:
        for path, (number, _) in leases.items():
            self._service.end_lease(path, number)


def at_once(call: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as over:
        result: Result = over.value
        return result
    raise AssertionError("it waits for something")


def _covers(prefix: str, path: str) -> bool:
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


def _ignore(path: str, before: Versioned | None, after: Versioned | None) -> None:
    """Nobody wants to know."""
