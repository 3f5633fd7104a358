"""Where a snapshot goes on."""

import json

import pytest

from magnetar.spark_connector.errors import DataLossError
from magnetar.spark_connector.jobs.snapshot import _with_gone, known, starts
from magnetar.spark_connector.jobs.tables.versions import TableVersion
from magnetar.spark_connector.tests.plans import plan_with

LOG = "persistent://public/default/t"


def test_the_first_run_begins_at_the_beginning() -> None:
    assert json.loads(starts(None)) == {}


def test_the_next_one_where_the_last_ended() -> None:
    places = {LOG: (5, 6, 70), f"{LOG}2-partition-1": (1, 2, 3), f"{LOG}3": (8, 9, -1)}
    assert json.loads(starts(TableVersion(1, places, 0))) == {
        LOG: 70, f"{LOG}2": {"1": 3}, f"{LOG}3": "8:9",
    }  # fmt: skip


@pytest.mark.parametrize("messages", [3, 70, 900])
def test_another_topic_of_the_same_name_is_read_from_its_beginning(messages) -> None:
    """Whether it has fewer messages than the snapshot has read, as many, or more."""
    before = TableVersion(1, {LOG: (5, 6, 70), "gone": (1, 2, 3)}, 0)
    again = {LOG: plan_with((messages, messages))}
    with pytest.raises(DataLossError, match=f"{LOG} has been deleted and made again"):
        known(before, again, fails=True)
    assert known(before, again, fails=False) == {}


def test_a_topic_that_is_gone_is_not_forgotten() -> None:
    """Three runs: of it, without it, and of another one of its name."""
    places = _with_gone(None, {LOG: (5, 6, 70)})
    places = _with_gone(TableVersion(1, places, 0), {f"{LOG}2": (7, 0, 1)})
    assert places == {LOG: (5, 6, 70), f"{LOG}2": (7, 0, 1)}
    again = {LOG: plan_with((3, 3)), f"{LOG}2": plan_with((1, 1))}
    with pytest.raises(DataLossError, match="made again"):
        known(TableVersion(2, places, 0), again, fails=True)


def test_the_same_topic_goes_on() -> None:
    plan = {LOG: plan_with((50, 50), (20, 30))}
    for place in ((10, 9, 9), (10, 50, 50), (11, 20, 80)):
        assert known(TableVersion(1, {LOG: place}, 0), plan, fails=True) == {LOG: place}
