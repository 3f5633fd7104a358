"""Files that are kept aside, where there are no others."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from magnetar.core.kernel.spare_files import COUNT, SpareFiles


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """Takes all files that this process may open but few, and puts all back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, before[1]))
    files: list[int] = []
    try:
        yield files
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def take_all(files: list[int]) -> int:
    before = len(files)
    with suppress(OSError):
        while True:
            files.append(os.open(os.devnull, os.O_RDONLY))
    return len(files) - before


def test_what_is_kept_aside_can_be_opened_when_it_is_lent(taken: list[int]) -> None:
    with closing(SpareFiles()) as spare:
        take_all(taken)
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            os.open(os.devnull, os.O_RDONLY)
        with spare.lend():
            inside: list[int] = []
            assert take_all(inside) == COUNT
            for file in inside:
                os.close(file)
        assert take_all(taken) == 0, "they are kept again"
    assert take_all(taken) == COUNT


def test_what_others_took_meanwhile_is_done_without(taken: list[int]) -> None:
    with closing(SpareFiles()) as spare:
        take_all(taken)
        with spare.lend():
            take_all(taken)
        os.close(taken.pop())
        with spare.lend():
            assert take_all(taken) == 1
