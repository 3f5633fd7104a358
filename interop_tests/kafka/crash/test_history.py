"""The judge of `history.py` is shown the crimes that it must find."""

import pytest

from .history import Committed, Stored, judge_group, judge_log

LOG = [Stored(0, 0, 0), Stored(0, 1, 1), Stored(1, 0, 0), Stored(0, 2, 2)]


def test_nothing_is_wrong():
    judge_log(LOG, LOG)
    judge_log(LOG[:2], LOG)
    judge_group([*LOG[:2], Committed(0, 1), LOG[1], *LOG[2:], Committed(0, 3)], LOG)


@pytest.mark.parametrize(
    ("acknowledged", "found"),
    [
        pytest.param(LOG, LOG[:3], id="lost"),
        pytest.param([Stored(0, 1, 0)], LOG, id="moved"),
        pytest.param(LOG[:2], [*LOG[:2], Stored(0, 2, 1)], id="twice"),
        pytest.param([], [Stored(0, 0, 1), Stored(0, 1, 0)], id="out of order"),
        pytest.param([], [Stored(0, 0, 0), Stored(0, 1, 2)], id="one is missing"),
    ],
)
def test_logs(acknowledged, found):
    with pytest.raises(AssertionError):
        judge_log(acknowledged, found)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*LOG, Committed(0, 2), LOG[1]], id="again after its commit"),
        pytest.param([LOG[0], LOG[3], LOG[2]], id="skipped"),
        pytest.param(LOG[:3], id="not to the end"),
    ],
)
def test_groups(events):
    with pytest.raises(AssertionError):
        judge_group(events, LOG)
