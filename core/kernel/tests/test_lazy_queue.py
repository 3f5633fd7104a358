"""A lazy queue behaves as a deque, and is small while it is empty."""

import sys
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.lazy_queue import LazyQueue


@given(st.lists(st.integers(-1, 9)))
def test_it_is_a_deque(steps: list[int]) -> None:
    """A number is appended, -1 takes one out."""
    queue, model = LazyQueue[int](), deque[int]()
    for step in steps:
        if step >= 0:
            queue.append(step)
            model.append(step)
        elif model:
            assert queue.first == model[0]
            assert queue.popleft() == model.popleft()
        assert list(queue) == list(model)
        assert (len(queue), bool(queue)) == (len(model), bool(model))
    assert list(LazyQueue(model)) == list(model)
    queue.clear()
    assert not queue


def test_it_is_small_while_it_is_empty() -> None:
    queue = LazyQueue[int]()
    queue.append(1)
    queue.popleft()
    assert queue._items is None
    assert sys.getsizeof(queue) < 64 < sys.getsizeof(deque())


def test_nothing_comes_out_of_an_empty_one() -> None:
    with pytest.raises(AssertionError):
        LazyQueue[int]().popleft()
