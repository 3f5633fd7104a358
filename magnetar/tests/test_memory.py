"""Memory that is freed and taken again comes without faults, once the C library has been told."""

import subprocess
import sys
from pathlib import Path

import pytest

from magnetar import memory

FAULTS = """
import resource, sys
from magnetar import memory
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


def faults(*arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(not memory.keep_what_is_freed(), reason="this C library has no mallopt")
def test_it_comes_without_faults() -> None:
    assert faults("keep") * 10 < faults()
