"""Memory that is freed and taken again comes without faults, once the C library has been told."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from magnetar.process import memory

FAULTS = """
import resource, sys
from magnetar.process import memory
if "keep" in sys.argv:
    assert memory.keep_what_is_freed()
def load():
    for _ in range(10):
        blocks = [bytearray(b"x") * (1 << 20) for _ in range(40)]
        del blocks


load()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
load()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def faults(*arguments: str) -> int:
    return int(run(FAULTS, *arguments))


@pytest.mark.skipif(not memory.keep_what_is_freed(), reason="this C library has no mallopt")
def test_it_comes_without_faults() -> None:
    assert faults("keep") * 10 < faults()


HELD_BACK = """
import ctypes
from magnetar.process import memory
from pathlib import Path
assert memory.keep_what_is_freed()
counted = memory.free_counter()
def resident():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


blocks = [bytes(bytearray(b"x") * (1 << 20)) for _ in range(300)]
last = blocks[-1]
del blocks
kept = counted(), resident()
memory.give_back()
print(*kept, resident())
"""


@pytest.mark.skipif(memory.free_counter() is None, reason="this C library has no mallinfo2")
def test_what_lies_below_something_used_goes_back_too() -> None:
    free, before, after = map(int, run(HELD_BACK).split())
    assert free > 250 << 20
    assert before - after > 200 << 20


def looks(*seen: tuple[int, int, float]) -> list[int | None]:
    """What is to be retained after each look: free and resident megabytes, and the seconds worked
    since. Half of what is free then is resident no more.
    """
    memory_looks, worked, found = memory.Looks(), 0.0, []
    for free, resident, seconds in seen:
        worked += seconds
        kept = memory_looks.look(free << 20, resident << 20, worked)
        if kept is not None:
            memory_looks.given_back((resident - free // 2) << 20)
        found.append(kept)
    return found


def test_a_quiet_server_retains_nothing() -> None:
    assert looks((20, 90, 3.0), (20, 80, 0.1)) == [0, None]
    assert looks((1, 90, 0.1)) == [None]


def test_a_quiet_server_gives_back_what_it_has_used_again() -> None:
    # The second search frees the pages that something used between them; the third finds none.
    assert looks((20, 90, 0.1), (20, 88, 0.1), (20, 79, 0.1)) == [0, 0, None]
    assert looks((20, 90, 0.1), (20, 81, 0.1)) == [0, None]


def test_a_quiet_server_gives_back_what_it_has_freed_since() -> None:
    assert looks((20, 90, 0.1), (30, 80, 0.1), (31, 65, 0.1)) == [0, 0, None]
    assert looks((20, 90, 0.1), (5, 80, 0.1), (18, 80, 0.1)) == [0, None, 0]


def test_growth_without_free_memory_is_not_searched() -> None:
    assert looks((20, 90, 0.1), (1, 200, 0.1)) == [0, None]


def test_a_load_retains_what_it_uses() -> None:
    start, busy = (0, 50, 0.0), (60, 150, 2.0)
    assert looks(start, *[busy] * 9) == [None] * 10
    assert looks(start, *[busy] * 9, (60, 150, 0.0)) == [None] * 10 + [0]


def test_what_a_load_does_not_use_for_long_goes_back() -> None:
    start, busy = (0, 50, 0.0), (100, 200, 2.0)
    assert looks(start, *[busy] * 5) == [None] * 4 + [memory.KEPT_BYTES, None]
    assert looks(start, *[busy] * 3, (10, 200, 2.0), busy) == [None] * 6


@pytest.mark.skipif(memory.free_counter() is None, reason="this C library has no mallinfo2")
def test_a_block_that_is_in_use_is_resident() -> None:
    before = memory.resident_bytes()
    block = bytearray(b"x") * (64 << 20)
    assert memory.resident_bytes() - before > 60 << 20
    assert len(block) == 64 << 20


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


def old_garbage() -> weakref.ref[Cycle]:
    """A cycle that nobody has any more, among old objects."""
    gc.collect()
    found = weakref.ref(old := Cycle())
    gc.collect(0)
    gc.collect(1)  # it is old now
    gc.collect(0)
    del old
    return found


def test_old_garbage_is_looked_for_after_many_new_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    found, garbage = old_garbage(), memory.Garbage()
    garbage.look(0, quiet=True)
    assert found() is not None
    monkeypatch.setattr(memory, "NEW_ROUNDS", gc.get_count()[1])
    garbage.look(0, quiet=False)
    assert found() is not None
    garbage.look(0, quiet=True)
    assert found() is None


@pytest.mark.parametrize(("quiet", "topics"), [(True, 1_000), (False, 5_000)])
def test_old_garbage_is_looked_for_after_topics_were_unloaded(quiet: bool, topics: int) -> None:
    garbage = memory.Garbage()
    for unloaded in (topics, 2 * topics):
        found = old_garbage()
        garbage.look(unloaded - 1, quiet=quiet)
        assert found() is not None
        garbage.look(unloaded, quiet=quiet)
        assert found() is None
