"""Once, in order: what five batches under way may do to each other."""

from collections import OrderedDict

import pytest

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.entry.kafka.record_batch import BatchHeader, header_of
from magnetar.wire.kafka.errors import INVALID_PRODUCER_EPOCH, OUT_OF_ORDER, KafkaRefusal
from magnetar.wire.kafka.partition.producer_states import (
    BATCHES_MAX,
    PRODUCERS_IN_ALL_MAX,
    PRODUCERS_MAX,
    PRODUCERS_MIN,
    SILENT_MS_MAX,
    BatchMetadata,
    Census,
    ProducerStates,
)
from magnetar.wire.kafka.tests.batch import batch

NOW_MS = 1_700_000_000_000


def header(first: int, count: int = 1, *, producer: int = 7, epoch: int = 0) -> BatchHeader:
    data = batch(*[b"x"] * count, producer=(producer, epoch, first))
    return header_of(data)


def come(known: ProducerStates, *, offset: int, first: int, count: int = 1) -> BatchMetadata:
    """A batch that is new, and stored at once."""
    made, before = known.admit(header(first, count), NOW_MS)
    assert not before
    known.stored(made, offset)
    return made


def refusal(known: ProducerStates, expected: BatchHeader) -> int:
    with pytest.raises(KafkaRefusal) as caught:
        known.admit(expected, NOW_MS)
    return caught.value.code


def test_one_behind_the_other_and_each_again() -> None:
    known = ProducerStates(Census())
    for place in range(BATCHES_MAX):
        come(known, offset=10 * place, first=2 * place, count=2)
    for place in range(BATCHES_MAX):
        again, before = known.admit(header(2 * place, 2), NOW_MS)
        assert (before, again.offset) == (True, 10 * place)
    come(known, offset=99, first=2 * BATCHES_MAX)
    assert refusal(known, header(0, 2)) == OUT_OF_ORDER, "too long ago"


@pytest.mark.parametrize("first", [0, 4, 6, 7])
def test_out_of_order(first: int) -> None:
    known = ProducerStates(Census())
    come(known, offset=0, first=3, count=2)
    if first == 4:
        assert refusal(known, header(4)) == OUT_OF_ORDER, "half of it was there"
    else:
        assert refusal(known, header(first)) == OUT_OF_ORDER
    come(known, offset=2, first=5)


def test_what_is_under_way_is_not_the_last_that_is_stored() -> None:
    known = ProducerStates(Census())
    come(known, offset=0, first=0, count=3)
    made, _ = known.admit(header(3, 2), NOW_MS)
    ((_, producer),) = known.all()
    assert producer.last_stored == 2
    known.stored(made, 3)
    assert producer.last_stored == 4
    known.admit(header(0, epoch=1), NOW_MS)
    assert producer.last_stored == -1


def test_nothing_is_known_so_any_number_may_come() -> None:
    come(ProducerStates(Census()), offset=0, first=1_000)


def test_after_the_highest_number_comes_zero() -> None:
    known = ProducerStates(Census())
    come(known, offset=0, first=2**31 - 2, count=2)
    come(known, offset=2, first=0)
    known = ProducerStates(Census())
    come(known, offset=0, first=2**31 - 1, count=3)
    come(known, offset=3, first=2)


def test_epochs() -> None:
    known = ProducerStates(Census())
    come(known, offset=0, first=5)
    assert refusal(known, header(1, epoch=1)) == OUT_OF_ORDER, "a new epoch begins with 0"
    known.admit(header(0, epoch=1), NOW_MS)
    assert refusal(known, header(6)) == INVALID_PRODUCER_EPOCH


def test_again_before_it_is_stored() -> None:
    known = ProducerStates(Census())
    results: list[tuple[int, int]] = []
    made, _ = known.admit(header(0), NOW_MS)
    again, before = known.admit(header(0), NOW_MS)
    assert before
    assert again is made
    again.waiting.append(lambda code, offset: results.append((code, offset)))
    known.stored(made, 42)
    assert results == [(0, 42)]


def test_what_failed_and_what_came_behind_it_may_come_again() -> None:
    known = ProducerStates(Census())
    come(known, offset=0, first=0)
    second, _ = known.admit(header(1), NOW_MS)
    third, _ = known.admit(header(2), NOW_MS)
    results: list[tuple[int, int]] = []
    second.waiting.append(lambda code, offset: results.append((code, offset)))
    known.failed(7, second, 56)
    known.failed(7, third, 56)
    assert results == [(56, -1)]
    come(known, offset=1, first=1)
    come(known, offset=2, first=2)


def test_what_is_found_in_the_log() -> None:
    known = ProducerStates(Census())
    for index, count, producer, first in ((100, 3, 7, 0), (103, 1, 7, 3), (104, 1, -1, 0)):
        data = batch(*[b"x"] * count, producer=(producer, 0, first))
        known.apply(form.wrapped(data, count, NOW_MS), index, (0, 0), NOW_MS)
    marker = record_batch.marker(7, 0, 1, committed=True)
    known.apply(form.wrapped(marker, 1, NOW_MS), 105, (0, 0), NOW_MS)
    again, before = known.admit(header(3), NOW_MS)
    assert (before, again.offset) == (True, 103)
    come(known, offset=105, first=4)


def test_the_silent_are_forgotten() -> None:
    known = ProducerStates(Census())
    for producer in range(PRODUCERS_MAX + 1):
        known.admit(header(3, producer=producer), NOW_MS)
    known.admit(header(9, producer=0), NOW_MS)
    assert refusal(known, header(9, producer=2)) == OUT_OF_ORDER


def test_after_a_day_without_a_batch_nothing_is_known() -> None:
    known = ProducerStates(Census())
    known.admit(header(3, producer=1), NOW_MS)
    known.admit(header(3, producer=2), NOW_MS + 1)
    known.admit(header(4, producer=1), NOW_MS + 2)
    known.admit(header(0, producer=3), NOW_MS + 1 + SILENT_MS_MAX)
    assert [number for number, _ in known.all()] == [1, 3]


def test_who_floods_one_partition_with_ids_harms_no_other() -> None:
    census = Census()
    quiet, *floods = [
        ProducerStates(census) for _ in range(PRODUCERS_IN_ALL_MAX // PRODUCERS_MAX + 2)
    ]
    made = header(0)
    for number in range(PRODUCERS_MIN):
        quiet.admit(made._replace(producer_id=number), NOW_MS)
    for number in range(PRODUCERS_MAX):
        for flood in floods:
            flood.admit(made._replace(producer_id=number), NOW_MS)
    assert census.count == len(quiet) + sum(map(len, floods)) <= PRODUCERS_IN_ALL_MAX
    assert len(quiet) == PRODUCERS_MIN
    for flood in floods:
        flood.clear()
    assert census.count == PRODUCERS_MIN


def test_many_producers_make_a_batch_no_dearer() -> None:
    """Forgetting the first of a plain dict passes by all that were forgotten before."""
    made, known = header(0), ProducerStates(Census())
    assert isinstance(known._known, OrderedDict)
    for number in range(2 * PRODUCERS_MAX):
        known.admit(made._replace(producer_id=number), NOW_MS)
    assert len(known) == PRODUCERS_MAX
