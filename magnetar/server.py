"""The life of the process: tune, hold the data directory, serve, stop.

    start -> `compose.serve` -> ready (log, ready file) -> a signal -> drain -> exit 0

Exit codes: 0 stopped by a signal, and drained; 1 our own failure, with a traceback; 2 the
operator's, with a sentence; 128 + n when signal n came a second time. What is served is
`compose`'s.

Invariant: from the first signal on the process ends within `limits.drain_seconds` and a little
more, whatever hangs: if need be the kernel's alarm kills it.
"""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Final

import trio
from msgspec.structs import replace

from magnetar import compose, data_directory, introduction, logs
from magnetar.descriptors import connections_within, load_all_if, raise_limit
from magnetar.memory import keep_what_is_freed
from magnetar.operator_error import OperatorError
from magnetar.ready import ReadyReport, remove_ready_file, write_ready_file
from magnetar.settings import Settings

log = logging.getLogger(__name__)

SWITCH_INTERVAL_SECONDS: Final = 0.0001
"""The loop and the journal's thread take turns. With the interpreter's 5 ms a thread that computes
keeps the other waiting ten times as long as a sync takes."""
GC_THRESHOLDS: Final = (50_000, 20, 100)
"""The data path makes no cycles; the defaults would walk all topics every few thousand messages."""
GRACE_SECONDS: Final = 1.0
"""After the drain has been cancelled: time to unwind before SIGALRM, which nobody handles."""
STDIN: Final = 0
NO_SYNC: Final = (
    "not syncing: messages are acknowledged before the disk has them, and a power cut or a crash "
    "of the machine loses what was not written yet"
)
Serve = Callable[[Settings, Callable[[ReadyReport], None], trio.Event], Awaitable[None]]
"""Opens the doors, calls back when they are open, and returns when the event has been answered."""


def run(
    settings: Settings,
    *,
    config: str = "",
    stop_at_eof: bool = False,
    serve: Serve = compose.serve,
) -> int:
    """Serve until a signal; returns the exit code. `OperatorError` for what the operator can mend.

    `config` is the file that settings were read from, for the log.
    """
    logs.configure(settings.log)
    introduction.introduce_first(settings, config)
    _tune()
    settings = _with_room(settings)
    ready_file = settings.listen.ready_file
    stopping = Stopping(settings.limits.drain_seconds, ready_file)
    stopping.watch_signals()
    if stop_at_eof:
        threading.Thread(target=stopping.watch_stdin, name="stdin", daemon=True).start()
    try:
        with data_directory.opened(settings.storage.data_dir):
            if not settings.storage.sync:
                log.warning(NO_SYNC)
            remove_ready_file(ready_file)  # only now is it certain that nobody else keeps it
            try:
                trio.run(_serve, settings, stopping, serve)
            finally:
                remove_ready_file(ready_file)
    except BaseException as error:  # the top: it is logged here or nowhere
        fault = _operators_fault(error)
        if fault is not None:
            raise fault from None
        log.critical("this server failed", exc_info=error)
        return 1
    log.info("stopped")
    return 0


class Stopping:
    """Turns the first request to stop into an event, and insists on the second."""

    def __init__(self, drain_seconds: float, ready_file: str) -> None:
        self.drain_seconds = drain_seconds
        self.ready_file = ready_file
        self.stopping = False
        self._stop: trio.Event | None = None
        self._token: trio.lowlevel.TrioToken | None = None

    def watch_signals(self) -> None:
        """Plain handlers, not trio's: a second signal must work even when the loop is stuck."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(signal.SIGHUP, self._on_hangup if has_terminal() else _stay)

    def watch_stdin(self) -> None:
        """In a thread of its own: ask to stop when standard input ends."""
        while os.read(STDIN, 4096):
            pass
        self.ask()

    def attach(self, stop: trio.Event) -> None:
        """From now on there is a loop to stop; a signal may already have come."""
        self._stop = stop
        self._token = trio.lowlevel.current_trio_token()
        if self.stopping:
            stop.set()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping:
            with suppress(OperatorError):  # it stays, then; this goes
                remove_ready_file(self.ready_file)
            os._exit(128 + number)
        self.ask()

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        """The terminal is gone, and may say so more than once: no reason to be in a hurry."""
        self.ask()

    def ask(self) -> None:
        """Called from a signal handler or a thread."""
        self.stopping = True
        signal.setitimer(signal.ITIMER_REAL, self.drain_seconds + GRACE_SECONDS)
        if self._token is not None and self._stop is not None:
            try:
                self._token.run_sync_soon(self._stop.set)
            except trio.RunFinishedError:
                log.debug("a signal to stop came after the end")


def has_terminal() -> bool:
    """Whether this process belongs to a terminal, whose end is this server's."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _stay(_number: int, _frame: FrameType | None) -> None:
    """SIGHUP has daemons read their configuration again; this one has nothing to read again,
    and the default, to die at once, is not what anybody means.
    """
    log.warning("SIGHUP: nothing is read again while this server runs; it goes on")


async def _serve(settings: Settings, stopping: Stopping, serve: Serve) -> None:
    stop = trio.Event()
    stopping.attach(stop)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_limit_drain, stop, stopping.drain_seconds, nursery.cancel_scope)
        await serve(settings, partial(_ready, settings), stop)
        nursery.cancel_scope.cancel()


async def _limit_drain(stop: trio.Event, seconds: float, scope: trio.CancelScope) -> None:
    await stop.wait()
    log.info("stopping")
    await trio.sleep(seconds)
    log.warning("not drained within %g s: connections are cut", seconds)
    scope.cancel()


def _ready(settings: Settings, report: ReadyReport) -> None:
    # what was made so far stays: the collector need not look at it again and again
    gc.collect()
    gc.freeze()
    for name, where in report.listeners.items():
        log.info("%s listens on %s", name, where)
    introduction.say_who_may_connect(report.listeners)
    # before the last line: who reads that may read the file
    if settings.listen.ready_file:
        write_ready_file(settings.listen.ready_file, report)
    log.info("ready")


def _tune() -> None:
    keep_what_is_freed()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def _with_room(settings: Settings) -> Settings:
    """Of connections, as many as this process may have open files for."""
    files = raise_limit()
    load_all_if(files)
    room = connections_within(files, settings.limits.connections)
    return replace(settings, limits=replace(settings.limits, connections=room))


def _operators_fault(error: BaseException) -> OperatorError | None:
    """The operator's trouble inside whatever nurseries wrapped around it."""
    if isinstance(error, OperatorError):
        return error
    if isinstance(error, BaseExceptionGroup):
        faults = filter(None, map(_operators_fault, error.exceptions))
        return next(faults, None)
    return None
