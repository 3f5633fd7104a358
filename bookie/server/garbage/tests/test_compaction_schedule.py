import pytest

from magnetar.bookie.server.garbage.compaction_schedule import CompactionSchedule
from magnetar.bookie.server.settings import BookieSettings

SETTINGS = BookieSettings(
    minor_compaction_interval_seconds=10,
    minor_compaction_threshold=0.2,
    major_compaction_interval_seconds=100,
    major_compaction_threshold=0.8,
)


@pytest.fixture
def schedule() -> CompactionSchedule:
    return CompactionSchedule(SETTINGS, 1000.0, lambda: 77)


def rounds(schedule: CompactionSchedule, *times: float) -> list[float]:
    found = []
    for now in times:
        found.append(schedule.begin(now))
        schedule.end()
    return found


def test_each_comes_after_its_interval(schedule: CompactionSchedule) -> None:
    assert rounds(schedule, 1001, 1010, 1011, 1020, 1100, 1105) == [0, 0.2, 0, 0.2, 0.8, 0]
    minor, major = schedule.minor.statistics(), schedule.major.statistics()
    assert (minor.count, minor.last_ms, major.count, major.last_ms) == (3, 77, 1, 77)
    assert not minor.running


def test_what_is_suspended_comes_only_if_it_is_forced(schedule: CompactionSchedule) -> None:
    schedule.minor.suspended = True
    assert rounds(schedule, 1050) == [0]
    schedule.minor.force()
    assert schedule.begin(1051) == 0.2
    assert schedule.minor.statistics().running
    assert not schedule.major.statistics().running
    schedule.end()
    schedule.minor.suspended = False
    assert rounds(schedule, 1052, 1061) == [0, 0.2]


def test_an_interval_of_0_means_never() -> None:
    off = BookieSettings(minor_compaction_interval_seconds=0, major_compaction_interval_seconds=0)
    schedule = CompactionSchedule(off, 0, lambda: 1)
    assert rounds(schedule, 1e9) == [0]
    schedule.major.force()
    assert rounds(schedule, 1e9) == [0.8]
