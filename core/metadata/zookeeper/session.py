"""One session with ZooKeeper: the bridge between kazoo's threads and the loop. No other module uses
kazoo, but for its errors.

    state        means                                           leaves for
    CONNECTING   no connection yet, or it broke; requests wait   CONNECTED, ENDED
    CONNECTED    requests are sent                               CONNECTING, ENDED
    ENDED        ZooKeeper expired it, or its owner gave it up   -

An object lives as long as one session id: after ENDED, which is final, its owner begins another.

Threads. kazoo reads and writes its socket in a thread of its own, and would call back in two more,
one for answers and one for watches, whose order is lost between them. `_Handler` has none of the
two: answers, events and changes of the state go into one queue in the order in which the connection
received them, and the loop empties it, one wake-up for whatever has gathered (`_Answers`). So an
event is seen before the answer to a later request, as ZooKeeper's guarantees demand of clients.

A request whose connection breaks before its answer has come raises `AnswerLost`: it may have been
carried out. A task that is cancelled leaves its request behind, which may be carried out too.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio
from kazoo.client import KazooClient
from kazoo.exceptions import (
    EXCEPTIONS,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import CheckVersion, Connect, Transaction, Watch
from kazoo.protocol.states import KazooState, ZnodeStat
from kazoo.retry import KazooRetry
from outcome import Error, Value

from magnetar.core.metadata.zookeeper.requests import (
    NO_NODE,
    AddWatch,
    ReadAll,
    RemoveWatches,
)

RETRY_SECONDS_MAX: Final = 1.0
"""Between attempts to connect; the first one waits a twentieth of it."""
LOST: Final = (
    ConnectionLoss,
    SessionExpiredError,
    ConnectionClosedError,
    SessionMovedError,
    OperationTimeoutError,
    RequestTimeoutError,
)
log = logging.getLogger(__name__)
kazoo_log = logging.getLogger(f"{__name__}.kazoo")
kazoo_log.setLevel(logging.ERROR)  # it warns of each attempt to connect; the store says it once


class AnswerLost(Exception):
    """The connection broke before the answer came: the request may have been carried out."""


class SessionState(enum.Enum):
    """See the module's docstring."""

    CONNECTING = enum.auto()
    CONNECTED = enum.auto()
    ENDED = enum.auto()


class _Answers:
    """Calls that kazoo's thread hands to the loop: in order, a run at a time."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self._token = token
        self._calls: deque[Callable[[], object]] = deque()
        self._scheduled = False

    def put(self, call: Callable[[], object]) -> None:
        """In any thread. The loop clears the flag before it looks at the queue, so that no call is
        left behind: at worst it is woken up in vain.
        """
        self._calls.append(call)
        if not self._scheduled:
            self._scheduled = True
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        for _ in range(len(self._calls)):
            self._calls.popleft()()


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler for threads, without the two threads that would call back."""

    def __init__(self, answers: _Answers) -> None:
        super().__init__()
        self.completion_queue = self.callback_queue = answers

    @property
    def running(self) -> bool:
        """Always, or kazoo would call back in the thread that it happens to be in."""
        return True

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection, which says what it knows of its session and passes all events on."""

    negotiated_ms = 0
    heard: Callable[[str], None]

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        result = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):
            self.negotiated_ms = result[0].time_out
        return result

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        if watch.path:
            self.handler.callback_queue.put(partial(self.heard, watch.path))


class ZooKeeperSession:
    """See the module's docstring. `heard` gets the path of each event, `told` each new state."""

    def __init__(
        self,
        servers: str,
        timeout_seconds: float,
        heard: Callable[[str], None],
        told: Callable[[SessionState], None],
    ) -> None:
        self.state = SessionState.CONNECTING
        self._told = told
        self._asked: dict[object, tuple[trio.lowlevel.Task, float]] = {}
        """Tasks that wait for an answer and since when, one key a request, the oldest first."""
        self._answered_at = 0.0
        self._answers = _Answers(trio.lowlevel.current_trio_token())
        handler = _Handler(self._answers)
        retry = KazooRetry(
            max_tries=-1,
            delay=RETRY_SECONDS_MAX / 20,
            max_delay=RETRY_SECONDS_MAX,
            sleep_func=handler.sleep_func,
        )
        self._client = KazooClient(
            servers, timeout_seconds, handler=handler, connection_retry=retry, logger=kazoo_log
        )
        self._connection = _Connection(self._client, retry.copy(), logger=kazoo_log)
        self._connection.heard = heard
        self._client._connection = self._connection
        self._client.add_listener(lambda state: self._answers.put(partial(self._become, state)))
        self._client.start_async()

    @property
    def session_id(self) -> int:
        """ZooKeeper's id of this session; 0 before the first connection."""
        return self._client._session_id or 0

    @property
    def timeout_seconds(self) -> float:
        """After how long a silence ZooKeeper ends the session: it may grant less than was asked."""
        return self._connection.negotiated_ms / 1000

    def _become(self, state: KazooState) -> None:
        if self.state is SessionState.ENDED:
            return
        if state == KazooState.LOST:
            self.end()
        elif state == KazooState.CONNECTED:
            self.state = SessionState.CONNECTED
            self._answered_at = trio.current_time()
        else:
            self.state = SessionState.CONNECTING
        self._told(self.state)

    def end(self) -> None:
        """Use it no longer: whoever waits for an answer hears that it is lost."""
        self.state = SessionState.ENDED
        asked, self._asked = self._asked, {}
        for task, _ in asked.values():
            trio.lowlevel.reschedule(task, Error(AnswerLost("the session has ended")))

    def close(self) -> None:
        """Say good-bye to ZooKeeper, if it listens, and end kazoo's thread. It blocks."""
        with suppress(KazooException, OSError):
            self._client.stop()
        if self._connection.connection_stopped.is_set():
            self._client.close()

    @property
    def waiting(self) -> int:
        """How many requests have no answer yet."""
        return len(self._asked)

    def is_silent(self) -> bool:
        """Whether requests of a session timeout ago have no answer, on a connection that stands.

        kazoo notices such a connection by its pings, but sends none while there are requests.
        """
        if self.state is not SessionState.CONNECTED or not self._asked:
            return False
        _, oldest = next(iter(self._asked.values()))
        return trio.current_time() - max(oldest, self._answered_at) > self.timeout_seconds

    async def _ask(self, start: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if self.state is SessionState.ENDED:
            raise AnswerLost("the session has ended")
        key = object()
        self._asked[key] = (trio.lowlevel.current_task(), trio.current_time())

        def answered(result: Any) -> None:
            self._answered_at = trio.current_time()
            task, _ = self._asked.pop(key, (None, None))
            if task is None:
                return
            if result.successful():
                trio.lowlevel.reschedule(task, Value(result.value))
            elif isinstance(result.exception, LOST):
                trio.lowlevel.reschedule(task, Error(AnswerLost(repr(result.exception))))
            else:
                trio.lowlevel.reschedule(task, Error(result.exception))

        def cancelled(_: object) -> trio.lowlevel.Abort:
            self._asked.pop(key, None)
            return trio.lowlevel.Abort.SUCCEEDED

        start(*arguments, **options).rawlink(answered)
        return await trio.lowlevel.wait_task_rescheduled(cancelled)

    def _start(self, request: AddWatch | ReadAll | RemoveWatches | Transaction) -> Any:
        result = self._client.handler.async_result()
        self._client._call(request, result)
        return result

    async def read(self, path: str) -> tuple[bytes | None, ZnodeStat]:
        found: tuple[bytes | None, ZnodeStat] = await self._ask(self._client.get_async, path)
        return found

    async def read_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """The data of many nodes, by one request; None where there is none."""
        found = await self._ask(self._start, ReadAll(tuple(paths)))
        for one in found:
            if isinstance(one, int) and one != NO_NODE:
                raise EXCEPTIONS[one]
        return [None if isinstance(one, int) else one for one in found]

    async def create(
        self, path: str, value: bytes | None, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Create a node; its path, which has a number at its end with `sequence`."""
        created: str = await self._ask(
            self._client.create_async, path, value, ephemeral=ephemeral, sequence=sequence
        )
        return created

    async def write(self, requests: list[Any]) -> list[Any]:
        """Carry all of kazoo's requests out, or none; what became of each."""
        results: list[Any] = await self._ask(self._start, Transaction(requests))
        return results

    async def remove(self, path: str, version: int) -> None:
        await self._ask(self._client.delete_async, path, version)

    def remove_soon(self, path: str) -> None:
        """Remove a node, whose end nobody waits for."""
        self._client.delete_async(path)

    async def names(self, path: str) -> list[str]:
        found: list[str] = await self._ask(self._client.get_children_async, path)
        return found

    async def commit(self) -> None:
        """Have a quorum of the servers agree to a write that changes nothing.

        Apart from the session being alive, it says that this session's server has heard of all that
        was committed before it.
        """
        await self.write([CheckVersion("/", -1)])

    def add_watch(self, path: str, done: Callable[[BaseException | None], None]) -> None:
        """Report changes from now on: no later request is carried out before."""
        self._start(AddWatch(path)).rawlink(lambda result: done(result.exception))

    def remove_watch(self, path: str) -> None:
        """Report them no longer; nobody waits for the answer."""
        self._start(RemoveWatches(path))
