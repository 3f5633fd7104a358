"""Tells the server from time to time that an attempt is alive.

Attempts whose tasks are done wait for those that are not, and all are given up when none has been
heard of for the transaction's time-out. A task may wait long for its next rows (a slow query in
front of it), so a thread of its own speaks for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from magnetar.spark_connector.errors import ConnectorError

log = logging.getLogger(__name__)

SIGNS: Final = 4
"""So many fall in a time-out."""


@contextmanager
def given(renew: Callable[[], None], timeout_seconds: float) -> Iterator[None]:
    """Call `renew` from time to time, for the length of a block."""
    over = threading.Event()

    def speak() -> None:
        while not over.wait(timeout_seconds / SIGNS):
            try:
                renew()
            except ConnectorError as error:  # the rows themselves find out whether it lasts
                log.warning("no sign of life could be given: %s", error)

    # a daemon, since a request that hangs is not to keep the worker from its next task
    threading.Thread(target=speak, name="sign of life", daemon=True).start()
    try:
        yield
    finally:
        over.set()
