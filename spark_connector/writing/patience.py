"""How long it is tried again, and how often."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.writing.errors import TRANSIENT

Found = TypeVar("Found")

PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 2.0


class Patience:
    """Tries again until nothing has succeeded for some time. Pauses double meanwhile."""

    def __init__(self, seconds: float, start_over: Callable[[], None]) -> None:
        """`start_over` puts things in order before it is tried again."""
        self._seconds = seconds
        self._start_over = start_over
        self._pause = PAUSE_SECONDS
        self._until = 0.0
        """Set by the first failure since the last success."""

    def succeeded(self) -> None:
        """Something was achieved, so that the next failure is a first one."""
        self._pause, self._until = PAUSE_SECONDS, 0.0

    def insist(self, action: Callable[[], Found]) -> Found:
        """Try until it returns, which alone is no success; `ServiceError` when the time is over."""
        while True:
            try:
                return action()
            except TRANSIENT as error:
                self._wait(error)

    def answer(self, question: Callable[[], Found]) -> Found:
        """As `insist`, and a success."""
        found = self.insist(question)
        self.succeeded()
        return found

    def _wait(self, error: Exception) -> None:
        now = time.monotonic()
        self._until = self._until or now + self._seconds
        self._start_over()
        if now >= self._until:
            seconds = f"{self._seconds:g} s"
            raise ServiceError(f"the server acknowledged nothing for {seconds}: {error}") from error
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, PAUSE_SECONDS_MAX)
