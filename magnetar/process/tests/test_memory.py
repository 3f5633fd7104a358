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


def looks(*seen: tuple[int, float]) -> list[int | None]:
    """What is to be retained after each look: free megabytes, and the seconds worked since."""
    memory_looks, worked, found = memory.Looks(), 0.0, []
    for megabytes, seconds in seen:
        worked += seconds
        found.append(memory_looks.look(megabytes << 20, worked))
    return found


def test_a_quiet_server_retains_nothing() -> None:
    assert looks((20, 3.0), (20, 0.1)) == [0, None]
    assert looks((20, 0.4), (40, 0.1), (41, 0.1), (60, 0.1)) == [0, 0, None, 0]
    assert looks((1, 0.1)) == [None]


def test_a_load_retains_what_it_uses() -> None:
    start, busy = (0, 0.0), (60, 2.0)
    assert looks(start, *[busy] * 9) == [None] * 10
    assert looks(start, *[busy] * 9, (60, 0.0)) == [None] * 10 + [0]


def test_what_a_load_does_not_use_for_long_goes_back() -> None:
    start, busy = (0, 0.0), (100, 2.0)
    assert looks(start, *[busy] * 5) == [None] * 4 + [memory.KEPT_BYTES, None]
    assert looks(start, *[busy] * 3, (10, 2.0), busy) == [None] * 6


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


def test_old_garbage_is_looked_for_after_many_new_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    found = weakref.ref(old := Cycle())
    gc.collect(0)
    gc.collect(1)  # it is old now
    gc.collect(0)
    del old
    memory.collect_if_much_is_new()
    assert found() is not None
    monkeypatch.setattr(memory, "NEW_ROUNDS", gc.get_count()[1])
    memory.collect_if_much_is_new()
    assert found() is None
