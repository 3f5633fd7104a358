"""The server process: tune it, lock the data directory, serve, stop.

    start -> `compose.serve` -> ready (log, ready file) -> a signal -> drain -> exit 0

Exit codes: 0 after a signal and a complete drain; 1 for our own failure, with a traceback, and for
a drain that was cut short, with a warning; 2 for the operator's error, with a sentence; 128 + n
when signal n came a second time. `compose` decides what is served.

Invariant: after the first signal the process ends within `limits.drain_seconds` and a little
more, whatever hangs: if necessary the kernel's alarm kills it.
"""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from types import FrameType
from typing import Final, NoReturn

import trio
from msgspec.structs import replace

from magnetar.operator_error import OperatorError
from magnetar.process import data_directory, introduction, logs
from magnetar.process.descriptors import connections_within, load_all_if, make_room, raise_limit
from magnetar.process.memory import keep_what_is_freed
from magnetar.process.ready import ReadyReport, remove_ready_file, write_ready_file
from magnetar.settings import Settings
from magnetar.storage.failure import is_told, leaves_of

log = logging.getLogger(__name__)

SWITCH_INTERVAL_SECONDS: Final = 0.0001
"""The loop and the journal's thread alternate. With the interpreter's default of 5 ms a thread that
computes delays the other by ten times the length of a sync."""
GC_THRESHOLDS: Final = (1_000, 10_000, 100)
"""The data path makes no cycles; the defaults would scan all topics every few thousand messages.

A pause is as long as what is looked at: the new objects of messages that wait for the disk, which
are far more than the threshold says while thousands do (it counts those that were freed, also old
ones). With 4,000 they took up to 17 ms of CPU with 10,000 devices, and 3 ms with 1,000; each object
is looked at once either way. It was 140 ms when the middle-aged ones were looked at, which were all
those of 10,000 clients that had just come. So that is left to a quiet moment (`process/memory.py`).
"""
GRACE_SECONDS: Final = 1.0
"""Time to unwind after the drain is cancelled, before the unhandled SIGALRM kills the process."""
HANGUP_IGNORED: Final = (
    "SIGHUP ignored: settings are read once; files with certificates and passwords are watched"
)
STDIN: Final = 0
NO_SYNC: Final = (
    "not syncing: messages are acknowledged before they are on disk, and a power cut or a crash "
    "of the machine loses what was not written yet"
)
Serve = Callable[[Settings, Callable[[ReadyReport], None], trio.Event], Awaitable[None]]
"""Opens the doors, calls back when they are open, and shuts down when the event is set."""


def run(
    settings: Settings,
    *,
    config: str = "",
    stop_at_eof: bool = False,
    serve: Serve | None = None,
    stored_at: str = "",
) -> int:
    """Serve until a signal; return the exit code. Raises `OperatorError` for operator errors.

    `config` is the file that settings were read from, for the log. `serve` is `compose.serve` by
    default, which a bookie does not import: it has all fronts. `stored_at` says where data is
    kept, by a process that needs no data directory.
    """
    if serve is None:
        from magnetar import compose

        serve = compose.serve
    logs.configure(settings.log)
    introduction.introduce_first(settings, config, stored_at)
    _tune()
    settings = _with_room(settings)
    ready_file = settings.listen.ready_file
    stopping = Stopping(settings.limits.drain_seconds, ready_file)
    stopping.watch_signals()
    if stop_at_eof:
        threading.Thread(target=stopping.watch_stdin, name="stdin", daemon=True).start()
    try:
        with nullcontext() if stored_at else _data_directory(settings):
            remove_ready_file(ready_file)  # only now is it certain that no other server uses it
            try:
                trio.run(_serve, settings, stopping, serve)
            finally:
                remove_ready_file(ready_file)
    except BaseException as error:  # the top level: the last place to log it
        fault = _operators_fault(error)
        if fault is not None:
            raise fault from None
        if not is_told(error):
            log.critical("this server failed", exc_info=error)
        return 1
    if stopping.cut_short:
        log.warning("stopped before all was drained")
        return 1
    log.info("stopped")
    return 0


def leave(code: int) -> NoReturn:
    """End the process of a whole server. All is stored and closed; the interpreter would now
    destroy the objects of ten thousand topics, which takes a second or more, and the drain has a
    deadline.
    """
    logging.shutdown()
    os._exit(code)


@contextmanager
def _data_directory(settings: Settings) -> Iterator[None]:
    with data_directory.opened(settings.storage.data_dir):
        if not settings.storage.sync:
            log.warning(NO_SYNC)
        yield


class Stopping:
    """Turns the first request to stop into an event, and ends the process at the second."""

    def __init__(self, drain_seconds: float, ready_file: str) -> None:
        self.drain_seconds = drain_seconds
        self.ready_file = ready_file
        self.stopping = False
        self.cut_short = False
        self._stop: trio.Event | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def watch_signals(self) -> None:
        """Plain handlers, not trio's: a second signal must work even when the loop is stuck."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(signal.SIGHUP, self._on_hangup if has_terminal() else self._stay)

    def watch_stdin(self) -> None:
        """Request a stop when standard input ends. Runs in its own thread."""
        while os.read(STDIN, 4096):
            pass
        self.ask()

    def attach(self, stop: trio.Event) -> None:
        """Connect the running loop's stop event; a signal may already have come."""
        self._stop = stop
        self._token = trio.lowlevel.current_trio_token()
        if self.stopping:
            stop.set()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping:
            with suppress(OperatorError):  # a file that cannot be removed must not keep us here
                remove_ready_file(self.ready_file)
            os._exit(128 + number)
        self.ask()

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        """The terminal is gone. It may signal that more than once, which is no second request."""
        self.ask()

    def _stay(self, _number: int, _frame: FrameType | None) -> None:
        """Ignore SIGHUP, which tells daemons to reload their configuration. This server reads
        settings once, and the default action, to die at once, is not what operators want.
        """
        # Logged by the loop: a handler may interrupt a write to standard error, and such writes are
        # not reentrant (`_enter_buffered_busy` in Modules/_io/bufferedio.c of CPython 3.11).
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(log.warning, HANGUP_IGNORED)

    def ask(self) -> None:
        """Request a stop; called from a signal handler or a thread."""
        self.stopping = True
        signal.setitimer(signal.ITIMER_REAL, self.drain_seconds + GRACE_SECONDS)
        if self._token is not None and self._stop is not None:
            try:
                self._token.run_sync_soon(self._stop.set)
            except trio.RunFinishedError:
                log.debug("a signal to stop came after the end")


def has_terminal() -> bool:
    """Whether this process has a controlling terminal, with which the server ends."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


async def _serve(settings: Settings, stopping: Stopping, serve: Serve) -> None:
    stop = trio.Event()
    stopping.attach(stop)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_limit_drain, stop, stopping, nursery.cancel_scope)
        await serve(settings, partial(_ready, settings), stop)
        nursery.cancel_scope.cancel()


async def _limit_drain(stop: trio.Event, stopping: Stopping, scope: trio.CancelScope) -> None:
    await stop.wait()
    log.info("stopping")
    await trio.sleep(stopping.drain_seconds)
    stopping.cut_short = True
    log.warning(
        "not drained within %g s: closing the remaining connections", stopping.drain_seconds
    )
    scope.cancel()


def _ready(settings: Settings, report: ReadyReport) -> None:
    # objects made so far stay alive: the collector need not scan them again
    gc.collect()
    gc.freeze()
    for name, where in report.listeners.items():
        log.info("%s listens on %s", name, where)
    introduction.say_who_may_connect(report.listeners, settings.security)
    # before the last line: whoever sees that line may read the file
    if settings.listen.ready_file:
        write_ready_file(settings.listen.ready_file, report)
    log.info("ready")


def _tune() -> None:
    keep_what_is_freed()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def _with_room(settings: Settings) -> Settings:
    """The settings, with as many connections as the limit of open files allows."""
    files = raise_limit()
    load_all_if(files)
    room = connections_within(files, settings.limits.connections)
    make_room(files, room)
    return replace(settings, limits=replace(settings.limits, connections=room))


def _operators_fault(error: BaseException) -> OperatorError | None:
    """The operator error inside the groups that nurseries wrapped around it, if any."""
    return next((each for each in leaves_of(error) if isinstance(each, OperatorError)), None)
