"""Calls after what they wait for is stored, many for one record."""

from __future__ import annotations

from collections.abc import Callable

from magnetar.core.kernel.errors import BrokerError, StorageFailed
from magnetar.wire.mqtt.clients.saver import Saver


class Store:
    def __init__(self) -> None:
        self.state = 0
        self.written: list[bytes] = []
        self._done: list[Callable[[BrokerError | None], None]] = []
        self.failed: list[BrokerError] = []
        self.saver = Saver(self.put, self.failed.append)

    def put(self, done: Callable[[BrokerError | None], None]) -> None:
        self.written.append(b"%d" % self.state)
        self._done.append(done)

    def finish(self, error: BrokerError | None = None) -> None:
        self._done.pop(0)(error)


def test_a_burst_shares_the_next_record() -> None:
    store, called = Store(), []
    for number in range(4):
        store.state = number
        store.saver.when_saved(lambda number=number: called.append(number))
    assert (store.written, called) == ([b"0"], [])
    store.finish()
    assert (store.written, called) == ([b"0", b"3"], [0])
    store.finish()
    assert (store.written, called) == ([b"0", b"3"], [0, 1, 2, 3])


def test_a_call_that_wants_another() -> None:
    store, called = Store(), []
    store.saver.when_saved(lambda: store.saver.when_saved(lambda: called.append("second")))
    store.finish()
    assert called == []
    store.finish()
    assert called == ["second"]


def test_after_a_failure_nothing_is_called() -> None:
    store, called = Store(), []
    store.saver.when_saved(lambda: called.append(1))
    store.saver.when_saved(lambda: called.append(2))
    error = StorageFailed("no")
    store.finish(error)
    assert (store.failed, called, len(store.written)) == ([error], [], 1)
    store.saver.when_saved(lambda: called.append(3))
    assert len(store.written) == 1


def test_who_has_stopped_is_not_called() -> None:
    store, called = Store(), []
    store.saver.when_saved(lambda: called.append(1))
    store.saver.stop()
    store.finish()
    assert called == []
