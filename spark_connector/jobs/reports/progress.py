"""How far a job is: a bar on a terminal, a line for each step elsewhere. Always on standard error.

Spark tells the tasks of its jobs that are done, a stream the messages that are left.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS: Final = 0.3
WIDTH: Final = 30


class StepProgress:
    """Shows the steps of a job, one after the other."""

    def __init__(self, out: TextIO | None = None, *, quiet: bool = False) -> None:
        self._out = sys.stderr if out is None else out
        self._quiet = quiet
        self._terminal = not quiet and self._out.isatty()

    @contextmanager
    def step(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """One step; its body may say how much is done, and of how much."""
        began = time.monotonic()
        if self._terminal:
            self._bar(label, 0, 0, 0)
        try:
            yield lambda done, total: self.at(label, done, total, time.monotonic() - began)
        finally:
            if self._terminal:  # what is said next has the line for itself
                self._out.write("\r\x1b[K")
                self._out.flush()
        seconds = time.monotonic() - began
        if not self._quiet:
            self._out.write(f"{label}: {seconds:.1f} s\n")
            self._out.flush()

    def at(self, label: str, done: int, total: int, seconds: float) -> None:
        """How far the step is."""
        if self._terminal:
            self._bar(label, done, total, seconds)

    @contextmanager
    def tasks(self, spark: SparkSession, label: str) -> Iterator[None]:
        """A step whose Spark jobs are watched."""
        with self.step(label) as at:
            # Spark Connect has no context to ask
            context = getattr(spark, "_sc", None) if self._terminal else None
            if context is None:
                yield
                return
            context.setJobGroup(label, label)
            ended = threading.Event()
            watcher = threading.Thread(target=_watch, args=(context, label, at, ended), daemon=True)
            watcher.start()
            try:
                yield
            finally:
                ended.set()
                watcher.join()
                context.setLocalProperty("spark.jobGroup.id", None)

    def _bar(self, label: str, done: int, total: int, seconds: float) -> None:
        share = min(done / total, 1.0) if total else 0.0
        filled = round(WIDTH * share)
        bar = "#" * filled + "." * (WIDTH - filled)
        self._out.write(f"\r\x1b[K{label} [{bar}] {share:4.0%} {seconds:.0f} s")
        self._out.flush()


SILENT: Final = StepProgress(quiet=True)
"""For who calls a job from a program."""


def _watch(
    context: object, group: str, at: Callable[[int, int], None], ended: threading.Event
) -> None:
    tracker = context.statusTracker()  # type: ignore[attr-defined]
    while not ended.wait(POLL_SECONDS):
        done = total = 0
        for job in tracker.getJobIdsForGroup(group):
            found = tracker.getJobInfo(job)
            for stage in found.stageIds if found is not None else ():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    done, total = done + info.numCompletedTasks, total + info.numTasks
        at(done, total)
