"""Open files are asked for, and connections are fewer where the system gives fewer."""

import logging
import resource
from collections.abc import Iterator

import pytest

from magnetar.descriptors import OTHER_FILES, connections_within, raise_limit


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """Those of this process, put back afterwards."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_all_that_is_allowed_is_asked_for(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    assert raise_limit() == hard
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    assert raise_limit() == hard


@pytest.mark.parametrize(
    ("files", "wanted", "taken"),
    [
        (20_000, 10_000, 10_000),
        (-1, 10_000, 10_000),
        (10_000 + OTHER_FILES, 10_000, 10_000),
        (10_000, 10_000, 10_000 - OTHER_FILES),
        (300, 10_000, 124),
        (64, 10_000, 6),
        (40, 10_000, 1),
        (300, 100, 100),
    ],
)
def test_connections_leave_files_for_the_rest(
    files: int, wanted: int, taken: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert connections_within(files, wanted) == taken
    assert len(caplog.records) == (taken < wanted)
