"""The flusher: nothing that was appended waits for the next one."""

import trio
import trio.testing

from magnetar.bookie.server.journal.flusher import Flusher


class Appends:
    """As much of a journal as a flusher knows."""

    def __init__(self) -> None:
        self.pending: list[str] = []
        self.handed: list[str] = []

    def append(self, what: str) -> bool:
        self.pending.append(what)
        return len(self.pending) == 1

    def hand_over(self) -> None:
        self.handed += self.pending
        self.pending.clear()


async def test_an_append_wakes_it(nursery):
    journal = Appends()
    flusher = Flusher(journal)
    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    assert journal.append("a")
    flusher.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert journal.handed == ["a"]
    flusher.begin_group()
    assert journal.append("b")
    flusher.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert journal.handed == ["a"]
    flusher.flush_group()
    assert journal.handed == ["a", "b"]
    nursery.cancel_scope.cancel()


async def test_a_loop_that_flushes_wakes_nobody(nursery):
    journal = Appends()
    flusher = Flusher(journal)
    flusher.leave_to_loop()
    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    for what in ("a", "b"):
        journal.append(what)
        flusher.wake()
        await trio.testing.wait_all_tasks_blocked()
        assert what not in journal.handed
        flusher.flush_group()
        assert journal.handed[-1] == what
    nursery.cancel_scope.cancel()


async def test_what_is_appended_while_it_is_awake_is_handed_over_too(nursery):
    """Such an append is the first of its group: no other one would wake the flusher for it."""
    journal = Appends()
    flusher = Flusher(journal)

    def answer() -> None:
        if journal.append("in an answer"):
            flusher.wake()

    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    flusher.call_soon(answer)
    await trio.testing.wait_all_tasks_blocked()
    assert journal.handed == ["in an answer"]
    nursery.cancel_scope.cancel()


async def test_what_a_delivery_asks_for_is_done_too(nursery):
    """A journal that fails tells so from within the hand-over."""
    journal = Appends()
    flusher = Flusher(journal)
    results = []

    def hand_over() -> None:
        if journal.pending:
            journal.pending.clear()
            flusher.call_soon(lambda: results.append("refused"))

    journal.hand_over = hand_over
    nursery.start_soon(flusher.run)
    await trio.testing.wait_all_tasks_blocked()
    journal.append("a")
    flusher.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert results == ["refused"]
    nursery.cancel_scope.cancel()
