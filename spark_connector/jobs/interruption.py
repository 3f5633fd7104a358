"""How a job is stopped by Ctrl-C or SIGTERM: in order, with one line in place of Spark's traces.

PySpark's own handler calls Java and raises `KeyboardInterrupt`, wherever the program is: mostly in
the middle of another call to Java, whose connection is then of no use any more (seen with 4.3). If
it comes while Java is started, Java stays behind without a program, for good: it does not find
the file that it is to write, and listens. So nothing is raised here. A session that is being
started is awaited, and one that is there is stopped by another thread, which ends whatever call
the program is in. A second signal ends the program at once, and Java with it.
"""

from __future__ import annotations

import io
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNALS: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


@contextmanager
def signals_to(heard: Callable[[int], None]) -> Iterator[None]:
    """Have a function called with each signal that asks for an end. Python gives signals to the
    main thread alone: elsewhere they go where they went.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handler(number: int, _frame: FrameType | None) -> None:
        heard(number)

    former = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)


class Interruption:
    """What signals do to one job."""

    def __init__(self) -> None:
        self.number = 0
        """The first signal that came."""
        self.out = sys.stderr
        """Where it is told."""
        self._spark: SparkSession | None = None
        self._stopping: threading.Thread | None = None

    def hear(self, number: int) -> None:
        """Begin to stop, in silence: what fails from now on is no news. A second signal has its
        usual effect.
        """
        self.number = number
        logging.disable(logging.CRITICAL)
        sys.stderr = io.StringIO()
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        if self._spark is not None:
            self._stopping = threading.Thread(target=_stop, args=(self._spark,), daemon=True)
            self._stopping.start()

    def guard(self, spark: SparkSession) -> None:
        """From now on there is a session to stop."""
        self._spark = spark
        self.check()

    def check(self) -> None:
        """`KeyboardInterrupt` if a signal has come: a query that is stopped ends like any other."""
        if self.number:
            raise KeyboardInterrupt

    def wait(self) -> None:
        """Until the session is stopped, if that has begun."""
        if self._stopping is not None:
            self._stopping.join()

    @property
    def exit_code(self) -> int:
        """As shells have it."""
        return 128 + (self.number or signal.SIGINT)

    @property
    def cause(self) -> str:
        return SIGNALS[signal.Signals(self.number or signal.SIGINT)]


def _stop(spark: SparkSession) -> None:
    """End all that runs."""
    context: Any = getattr(spark, "_sc", None)  # Spark Connect has none
    if context is not None:
        context.setLogLevel("OFF")
    for query in spark.streams.active:
        query.stop()
    spark.stop()
