"""One question to several bookies, which the test plays."""

import pytest
import trio

from magnetar.bookie.client.quorum.answers import Answers, ask_in_turn
from magnetar.bookie.rpc.messages import Read, ReadEntry, Status, StatusOnly
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, StorageFailed


class Bookies:
    """Takes questions; each bookie answers after its time, with its status."""

    def __init__(self, nursery, **plans):
        self._nursery = nursery
        self._plans = plans
        self.asked = []

    def to(self, bookie):
        self.asked.append((trio.current_time(), bookie))
        self._next = bookie
        return self

    def ask(self, request, replied):
        seconds, status = self._plans[self._next]
        name = self._next
        entry = name.encode() if status is Status.OK else None
        self._nursery.start_soon(self._reply, seconds, ReadEntry(status, 1, 0, entry), replied)

    async def _reply(self, seconds, response, replied):
        await trio.sleep(seconds)
        replied(response)


def check(response):
    if response.entry == b"bad":
        raise Corrupted("bad")
    return response.entry


async def ask(nursery, **plans):
    bookies = Bookies(nursery, **plans)
    begin = trio.current_time()
    try:
        return await ask_in_turn(bookies, list(plans), Read(1, 0), check, 2.0), begin, bookies
    finally:
        ask.asked = [(round(at - begin, 1), bookie) for at, bookie in bookies.asked]


@pytest.mark.parametrize(
    ("plans", "result", "asked"),
    [
        ({"a": (1, Status.OK), "b": (0, Status.OK)}, b"a", [(0, "a")]),
        ({"a": (1, Status.IO_ERROR), "b": (0, Status.OK)}, b"b", [(0, "a"), (1, "b")]),
        ({"bad": (0, Status.OK), "b": (0, Status.OK)}, b"b", [(0, "bad"), (0, "b")]),
        # slow ones: the next is asked after two seconds, and the one after that after four more
        ({"a": (9, Status.OK), "b": (9, Status.OK), "c": (1, Status.OK)}, b"c",
         [(0, "a"), (2, "b"), (6, "c")]),
        ({"a": (3, Status.OK), "b": (9, Status.OK)}, b"a", [(0, "a"), (2, "b")]),
        ({"a": (5, Status.OK), "b": (1, Status.NO_ENTRY)}, b"a", [(0, "a"), (2, "b")]),
    ],
)  # fmt: skip
async def test_who_is_asked_and_when(nursery, autojump_clock, plans, result, asked):
    found, _, _ = await ask(nursery, **plans)
    assert (found, ask.asked) == (result, asked)
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("plans", "error"),
    [
        ({"a": (0, Status.NO_ENTRY), "b": (0, Status.NO_LEDGER)}, EntryNotFound),
        ({"a": (0, Status.NO_ENTRY), "b": (0, Status.IO_ERROR)}, StorageFailed),
        ({"bad": (0, Status.OK), "b": (0, Status.NO_ENTRY)}, Corrupted),
        ({"bad": (0, Status.OK), "b": (0, Status.IO_ERROR)}, StorageFailed),
        ({"a": (5, Status.NO_ENTRY), "b": (0, Status.NO_ENTRY)}, EntryNotFound),
    ],
)
async def test_what_is_true_if_nobody_has_it(nursery, autojump_clock, plans, error):
    with pytest.raises(error) as raised:
        await ask(nursery, **plans)
    assert type(raised.value) is error
    assert [bookie for _, bookie in ask.asked] == list(plans)


async def test_a_status_alone_is_no_answer():
    class Odd:
        def to(self, bookie):
            return self

        def ask(self, request, replied):
            replied(StatusOnly(Status.OK))

    answers = Answers(Odd())
    answers.ask(3, "a", Read(1, 0))
    assert answers.waiting == 1
    found = await answers.next()
    assert (found.position, type(found.response)) == (3, StorageFailed)
    assert answers.waiting == 0
