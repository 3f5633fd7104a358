import msgspec
import pytest

from magnetar.bookie.server.disk_usage import DiskPressure
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
    return scheduled()


def scheduled(
    settings: BookieSettings = SETTINGS, pressure: DiskPressure = DiskPressure.NONE
) -> CompactionSchedule:
    return CompactionSchedule(settings, 1000.0, lambda: 77, lambda: pressure)


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
    schedule = scheduled(off)
    assert rounds(schedule, 1e9) == [0]
    schedule.major.force()
    assert rounds(schedule, 1e9) == [0.8]


def test_an_almost_full_disk_suspends_the_major_one_and_a_full_one_both() -> None:
    almost = scheduled(pressure=DiskPressure.ALMOST_FULL)
    assert almost.major.statistics().suspended
    assert not almost.minor.statistics().suspended
    assert rounds(almost, 1100, 1110) == [0.2, 0.2]
    full = scheduled(pressure=DiskPressure.FULL)
    assert rounds(full, 1100, 1200) == [0, 0]
    full.major.force()
    assert rounds(full, 1201, 1202) == [0.8, 0], "operators may have it in spite of that"


def test_a_full_disk_may_be_compacted_in_spite_of_that_but_not_of_operators() -> None:
    settings = msgspec.structs.replace(SETTINGS, force_gc_when_no_space=True)
    full = scheduled(settings, DiskPressure.FULL)
    assert rounds(full, 1100) == [0.8]
    full.major.suspended = True
    for compaction in (full.minor, full.major):
        compaction.force_for_room()
    assert rounds(full, 1101, 1102) == [0.2, 0]
