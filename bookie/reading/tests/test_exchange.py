"""Carrying frames between a query and bookies on real sockets."""

import time
from contextlib import closing

import pytest

from magnetar.bookie.reading.exchange import Exchange
from magnetar.bookie.reading.tests.bookies import listening
from magnetar.core.kernel.errors import NotFound, WireError


class Questions:
    """A query: one question to each bookie, and what became of it."""

    def __init__(self, *bookies, patience=20.0):
        self.to_send = [(bookie, b"what about " + bookie.encode()) for bookie in bookies]
        self.waiting = set(bookies)
        self.patience = patience
        self.answers = {}
        self.lost_ones = {}
        self.heard_of = set()
        self.times = []

    def requests(self, now):
        self.times.append(now)
        requests, self.to_send = self.to_send, []
        return requests

    def heard(self, bookie, now):
        self.heard_of.add(bookie)

    def answered(self, bookie, frame, now):
        if frame == b"nonsense":
            raise WireError("it makes no sense")
        self.answers[bookie] = frame
        self.waiting.discard(bookie)

    def lost(self, bookie, reason, now, *, worked):
        self.lost_ones[bookie] = (reason, worked)
        self.waiting.discard(bookie)

    def deadline(self, now):
        return self.times[0] + self.patience if self.waiting else None

    def overdue(self, now):
        return list(self.waiting)


def carried(exchange, questions):
    while questions.waiting:
        exchange.turn(questions)
    return questions


@pytest.mark.parametrize("whole", [True, False])
def test_questions_and_answers(whole):
    with (
        listening(lambda body: body.upper(), whole) as one,
        listening(lambda body: body[::-1], whole) as other,
        closing(Exchange({"a": one, "b": other}.get)) as exchange,
    ):
        for _ in range(2):  # on the same connections
            done = carried(exchange, Questions("a", "b"))
            assert done.answers == {"a": b"WHAT ABOUT A", "b": b"b tuoba tahw"}
            assert done.heard_of == {"a", "b"}


def _address(places):
    def find(bookie):
        if bookie not in places:
            raise NotFound("nobody knows where it is")
        return places[bookie]

    return find


def test_every_end_is_told_with_its_reason():
    def leave(_):
        raise EOFError

    with listening(bytes) as gone:
        pass
    with (
        listening(leave) as leaving,
        listening(lambda _: b"nonsense") as senseless,
        listening(lambda _: None) as silent,
    ):
        places = {"leaving": leaving, "senseless": senseless, "silent": silent, "gone": gone}
        with closing(Exchange(_address(places))) as exchange:
            done = carried(exchange, Questions(*places, "nowhere", patience=0.3))
    assert done.answers == {}
    assert done.lost_ones["leaving"][1]
    assert done.lost_ones["leaving"][0].startswith("left: ")
    assert done.lost_ones["senseless"] == ("left: it makes no sense", True)
    assert done.lost_ones["silent"] == ("does not answer", False)
    assert done.lost_ones["gone"] == ("cannot be reached: Connection refused", False)
    assert done.lost_ones["nowhere"] == ("cannot be reached: nobody knows where it is", False)


def test_a_connection_that_ended_is_made_anew():
    answers = iter([EOFError, b"again"])

    def answer(_):
        found = next(answers)
        if found is EOFError:
            raise EOFError
        return found

    with listening(answer) as one, closing(Exchange({"a": one}.get)) as exchange:
        assert carried(exchange, Questions("a")).lost_ones["a"][1]
        assert carried(exchange, Questions("a")).answers == {"a": b"again"}


def test_time_stands_still_between_turns(monkeypatch):
    """A caller who takes his time does not make bookies late."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with listening(bytes) as one, closing(Exchange({"a": one}.get)) as exchange:
        first = carried(exchange, Questions("a"))
        clock[0] += 1000.0
        second = carried(exchange, Questions("a"))
    assert second.times[0] == first.times[-1]
