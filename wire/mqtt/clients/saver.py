"""Stores the record of one connected session whenever something has to be durable.

    idle      leaves for SAVING with the first `when_saved`
    saving    one record is on its way; later requests share the next one

So a burst of acknowledgements costs one record, however many they are.

Invariant: a call happens after everything that changed before its `when_saved` is stored; after a
failure no call happens any more, and `failed` has been called.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.core.kernel.errors import BrokerError

Call = Callable[[], None]
Put = Callable[[Callable[[BrokerError | None], None]], None]


class Saver:
    """See the module's docstring."""

    __slots__ = ("_failed", "_put", "_saving", "_stopped", "_waiting")

    def __init__(self, put: Put, failed: Callable[[BrokerError], None]) -> None:
        """`put` stores the session as it is now; `failed` ends the connection."""
        self._put = put
        self._failed = failed
        self._saving = self._stopped = False
        self._waiting: list[Call] = []

    def when_saved(self, call: Call) -> None:
        """Call when everything up to now is stored."""
        self._waiting.append(call)
        if not self._saving and not self._stopped:
            self._save()

    def stop(self) -> None:
        """The connection ends: its last record is stored by others, and nobody waits any more. The
        client is not referred to from now on: it would be part of a cycle.
        """
        if not self._stopped:
            self._stopped = True
            self._waiting.clear()
            del self._put, self._failed

    def _save(self) -> None:
        self._saving = True
        calls, self._waiting = self._waiting, []

        def saved(error: BrokerError | None) -> None:
            self._saving = False
            if self._stopped:
                return
            if error is not None:
                failed = self._failed
                self.stop()
                failed(error)
                return
            for call in calls:
                call()
            if self._waiting and not self._saving:
                self._save()

        self._put(saved)
