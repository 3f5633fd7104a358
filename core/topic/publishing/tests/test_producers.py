"""The table at the head of `producers.py`, row by row, then a model that plays at random."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from magnetar.core.kernel.errors import BrokerError, Invalid, ProducerBusy, ProducerFenced
from magnetar.core.topic.publishing.producer import AccessMode, Producer, ProducerRequest
from magnetar.core.topic.publishing.producers import (
    EPOCH_CLAIMED_MAX,
    NO_CHANGE,
    Decision,
    Producers,
)

SHARED = AccessMode.SHARED
EXCLUSIVE = AccessMode.EXCLUSIVE
WAIT = AccessMode.WAIT_FOR_EXCLUSIVE
FENCE = AccessMode.EXCLUSIVE_WITH_FENCING


class Silent:
    """A client nobody listens to: decisions are looked at, not carried out."""

    def granted(self, epoch: int | None) -> None: ...
    def refused(self, error: BrokerError) -> None: ...
    def closed_by_broker(self) -> None: ...


def producer(name: str, mode: AccessMode = SHARED, **fields: object) -> Producer:
    given = {"name_is_users": True, "address": "1.2.3.4:5", **fields}
    return Producer(1, ProducerRequest(name=name, mode=mode, **given), Silent(), 0)  # type: ignore[arg-type]  # by name


def attached(*producers: Producer) -> Producers:
    books = Producers()
    for one in producers:
        books.attach(one, 0)
    return books


@pytest.mark.parametrize(("mode", "epoch"), [(SHARED, None), (EXCLUSIVE, 0), (WAIT, 0), (FENCE, 0)])
def test_an_empty_topic_lets_everybody_in(mode: AccessMode, epoch: int | None) -> None:
    books = Producers()
    one = producer("a", mode)
    assert books.attach(one, 0) == Decision(one, epoch)
    assert books.all() == [one]
    assert books.holder is (None if mode is SHARED else one)


def test_shared_beside_others() -> None:
    assert len(attached(producer("a"), producer("b"))) == 2
    for mode in (EXCLUSIVE, WAIT, FENCE):
        with pytest.raises(ProducerBusy):
            attached(producer("a", mode), producer("b"))
    with pytest.raises(ProducerBusy):
        attached(producer("a"), producer("w", WAIT), producer("b"))


@pytest.mark.parametrize("present", [SHARED, EXCLUSIVE, WAIT, FENCE])
def test_exclusive_beside_others_is_fenced(present: AccessMode) -> None:
    with pytest.raises(ProducerFenced):
        attached(producer("a", present), producer("b", EXCLUSIVE))


def test_waiters_are_served_in_order_with_rising_epochs() -> None:
    a, b, c, d = producer("a"), producer("b", WAIT), producer("c", WAIT), producer("d", WAIT)
    books = Producers()
    books.attach(a, 0)
    for one in (b, c, d):
        assert books.attach(one, 0) == NO_CHANGE
    assert books.detach(c) == NO_CHANGE
    assert books.detach(a) == Decision(b, 0)
    assert books.detach(b) == Decision(d, 1)
    assert books.detach(d) == NO_CHANGE
    assert len(books) == 0


def test_fencing_sends_everybody_away() -> None:
    a, b, w, f = producer("a"), producer("b"), producer("w", WAIT), producer("f", FENCE)
    books = attached(a, b, w)
    decision = books.attach(f, 0)
    assert (decision.granted, decision.epoch) == (f, 0)
    assert decision.evicted == (a, b)
    ((refused, error),) = decision.refused
    assert refused is w
    assert isinstance(error, ProducerFenced)
    assert (books.all(), books.waiting, books.holder) == ([f], [], f)


def test_an_older_epoch_is_fenced_for_ever() -> None:
    books = attached(producer("a", EXCLUSIVE))
    books.attach(producer("b", FENCE), 0)
    assert books.epoch == 1
    for mode in (EXCLUSIVE, WAIT, FENCE):
        with pytest.raises(ProducerFenced):
            books.attach(producer("a", mode, topic_epoch=0), 0)
    assert [one.name for one in books.all()] == ["b"]


def test_coming_back_with_the_current_epoch_keeps_it() -> None:
    a = producer("a", EXCLUSIVE)
    books = attached(a)
    books.detach(a)
    assert books.attach(producer("a", EXCLUSIVE, topic_epoch=0), 0).epoch == 0
    assert books.epoch == 0
    # one that knows more than we do is believed
    books = Producers()
    assert books.attach(producer("a", EXCLUSIVE, topic_epoch=7), 0).epoch == 7


def test_a_waiter_whose_epoch_passed_meanwhile_is_refused() -> None:
    a, late, c = producer("a", EXCLUSIVE), producer("l", WAIT, topic_epoch=0), producer("c", WAIT)
    books = attached(a, late, c)
    books.epoch = 3
    decision = books.detach(a)
    assert (decision.granted, decision.epoch) == (c, 4)
    assert [one for one, _error in decision.refused] == [late]
    late = producer("l", WAIT, topic_epoch=4)
    books.attach(late, 0)
    books.epoch = 5
    assert [one for one, _error in books.detach(c).refused] == [late]


def test_a_name_is_used_once() -> None:
    books = attached(producer("a"))
    with pytest.raises(ProducerBusy, match="already connected"):
        books.attach(producer("a"), 0)
    with pytest.raises(ProducerBusy):
        books.attach(producer("a", epoch=1, address="9.9.9.9:9", metadata={"other": "one"}), 0)


@pytest.mark.parametrize(
    "fields",
    [{}, {"address": "9.9.9.9:9", "name_is_users": False}, {"address": "9.9.9.9:9"}],
    ids=["same connection", "name given by the broker", "same client"],
)
def test_the_same_producer_may_come_back(fields: dict[str, object]) -> None:
    old = producer("a")
    books = attached(old)
    new = producer("a", epoch=1, **fields)
    assert books.attach(new, 1) == Decision(new, None, (old,))
    assert books.all() == [new]
    # the old one's farewell changes nothing
    assert books.detach(old) == NO_CHANGE
    assert books.all() == [new]


@pytest.mark.parametrize("mode", [EXCLUSIVE, WAIT, FENCE])
def test_a_holder_that_comes_back_goes_before_those_who_wait(mode: AccessMode) -> None:
    old, waiter = producer("a", EXCLUSIVE), producer("w", WAIT)
    books = attached(old, waiter)
    new = producer("a", mode, epoch=1, topic_epoch=0)
    assert books.attach(new, 0) == Decision(new, 0, (old,))
    assert (books.holder, books.waiting) == (new, [waiter])


def test_a_waiter_that_comes_back_keeps_its_place() -> None:
    a, b, c = producer("a"), producer("b", WAIT), producer("c", WAIT)
    books = attached(a, b, c)
    again = producer("b", WAIT, epoch=1)
    assert books.attach(again, 0) == Decision(evicted=(b,))
    assert books.waiting == [again, c]


def test_a_shared_producer_may_come_back_to_wait() -> None:
    old, other = producer("a"), producer("b")
    books = attached(old, other)
    new = producer("a", WAIT, epoch=1)
    assert books.attach(new, 0) == Decision(evicted=(old,))
    assert books.detach(other) == Decision(new, 0)


def test_who_is_refused_leaves_everything_as_it_was() -> None:
    old = producer("a")
    books = attached(old, producer("b"))
    for mode in (EXCLUSIVE,):
        with pytest.raises(ProducerFenced):
            books.attach(producer("a", mode, epoch=1), 0)
    books.attach(producer("w", WAIT), 0)
    with pytest.raises(ProducerBusy):
        books.attach(producer("a", epoch=1), 0)
    assert old in books.all()


def test_an_epoch_that_leaves_no_room_to_count_is_refused() -> None:
    """It was stored, and no exclusive producer could be told the next one, ever again."""
    books = Producers()
    for epoch in (EPOCH_CLAIMED_MAX + 1, 2**64 - 1):
        for mode in (SHARED, EXCLUSIVE, WAIT, FENCE):
            with pytest.raises(Invalid):
                books.attach(producer("a", mode, topic_epoch=epoch), 0)
    assert books.epoch == -1
    one = producer("a", EXCLUSIVE, topic_epoch=EPOCH_CLAIMED_MAX)
    assert books.attach(one, 0).epoch == EPOCH_CLAIMED_MAX
    books.detach(one)
    given = books.attach(producer("b", EXCLUSIVE), 0).epoch
    books.drop_all()
    assert books.attach(producer("b", EXCLUSIVE, topic_epoch=given), 0).epoch == given


def test_the_number_of_producers_is_limited() -> None:
    books = Producers()
    books.attach(producer("a"), 2)
    books.attach(producer("b"), 2)
    with pytest.raises(ProducerBusy, match="reached max producers limit"):
        books.attach(producer("c"), 2)
    books.attach(producer("b", epoch=1), 2)


def test_everybody_is_dropped_at_the_end() -> None:
    a, w = producer("a", EXCLUSIVE), producer("w", WAIT)
    books = attached(a, w)
    assert books.drop_all() == [a, w]
    assert (len(books), books.waiting, books.holder, books.epoch) == (0, [], None, 0)


class Play(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.books = Producers()
        self.publishing: set[Producer] = set()
        self.waiting: list[Producer] = []
        self.epoch = -1

    def carry_out(self, decision: Decision) -> None:
        for gone in decision.evicted:
            self.publishing.discard(gone)
            if gone in self.waiting:
                self.waiting.remove(gone)
        for gone, _error in decision.refused:
            self.waiting.remove(gone)
        if decision.granted is not None:
            if decision.granted in self.waiting:
                assert self.waiting.pop(0) is decision.granted
            self.publishing.add(decision.granted)
            if decision.epoch is not None:
                assert decision.epoch >= self.epoch
                self.epoch = decision.epoch

    @rule(
        name=st.sampled_from("abcd"),
        mode=st.sampled_from(AccessMode),
        epoch=st.integers(0, 3),
        topic_epoch=st.none() | st.integers(0, 4),
    )
    def attach(self, name: str, mode: AccessMode, epoch: int, topic_epoch: int | None) -> None:
        newcomer = producer(name, mode, epoch=epoch, topic_epoch=topic_epoch)
        try:
            decision = self.books.attach(newcomer, 3)
        except (ProducerBusy, ProducerFenced):
            return
        queued = newcomer in self.books.waiting
        assert queued is (decision.granted is not newcomer)
        self.carry_out(decision)
        if queued:
            self.waiting.insert(self.books.waiting.index(newcomer), newcomer)

    @rule(i=st.integers(0, 5))
    def detach(self, i: int) -> None:
        everybody = [*self.books.all(), *self.books.waiting]
        if i < len(everybody):
            leaver = everybody[i]
            decision = self.books.detach(leaver)
            self.publishing.discard(leaver)
            if leaver in self.waiting:
                self.waiting.remove(leaver)
            self.carry_out(decision)

    @invariant()
    def the_books_say_what_was_told(self) -> None:
        assert set(self.books.all()) == self.publishing
        assert self.books.waiting == self.waiting
        assert self.books.epoch == self.epoch
        if self.books.holder is not None:
            assert self.books.all() == [self.books.holder]
        if self.waiting:
            assert self.publishing
        names = [one.name for one in [*self.publishing, *self.waiting]]
        assert len(names) == len(set(names))


Play.TestCase.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, derandomize=True
)
TestPlay = Play.TestCase
