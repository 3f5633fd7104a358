"""What may pass is tried again, for a time that begins with the first failure."""

import pytest

from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.writing import patience
from magnetar.spark_connector.writing.errors import Unready, WriteError
from magnetar.spark_connector.writing.patience import PAUSE_SECONDS_MAX, Patience


class Watch:
    """A clock that stands still unless somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.pauses = 1000.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    made = Watch()
    monkeypatch.setattr(patience, "time", made)
    return made


class Action:
    """Fails some times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.begun = failures, 0

    def __call__(self) -> str:
        if self.failures:
            self.failures -= 1
            raise Unready("not yet")
        return "done"

    def start_over(self) -> None:
        self.begun += 1


def test_it_is_tried_again_with_longer_pauses(watch: Watch) -> None:
    action = Action(8)
    assert Patience(60, action.start_over).answer(action) == "done"
    assert action.begun == 8
    assert watch.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, PAUSE_SECONDS_MAX]


def test_the_time_ends(watch: Watch) -> None:
    action = Action(1_000)
    with pytest.raises(ServiceError, match="acknowledged nothing for 5 s: not yet"):
        Patience(5, action.start_over).insist(action)
    assert 5 <= watch.now - 1000 < 8


def test_a_success_begins_it_anew(watch: Watch) -> None:
    patient = Patience(5, lambda: None)
    for _ in range(10):
        patient.answer(Action(4))
        watch.now += 100


def test_to_return_is_no_success(watch: Watch) -> None:
    patient = Patience(5, lambda: None)
    patient.insist(Action(4))
    watch.now += 100
    with pytest.raises(ServiceError):
        patient.insist(Action(1))


def test_what_is_refused_is_not_tried_again(watch: Watch) -> None:
    def refused() -> None:
        raise WriteError("no")

    with pytest.raises(WriteError):
        Patience(5, lambda: None).insist(refused)
    assert watch.pauses == []
