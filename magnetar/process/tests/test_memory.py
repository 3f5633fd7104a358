"""Memory that is freed and taken again comes without faults, once the C library has been told."""

import subprocess
import sys
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
