"""Open files are asked for, have room, and connections are fewer where the system gives fewer."""

import logging
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from magnetar.process.descriptors import FEW_FILES, OTHER_FILES, connections_within, raise_limit


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
    ("files", "expected", "taken"),
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
    files: int, expected: int, taken: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert connections_within(files, expected) == taken
    assert len(caplog.records) == (taken < expected)


@pytest.mark.parametrize(("files", "loaded"), [(FEW_FILES - 1, True), (FEW_FILES, False)])
def test_all_is_loaded_at_once_where_files_are_few(files: int, loaded: bool) -> None:
    """In a process of its own: here it is loaded already."""
    late = ["magnetar.wire.http.server.stack", "magnetar.wire.kafka.messages.quorum", "wsproto"]
    code = (
        "import sys, magnetar.compose; from magnetar.process.descriptors import load_all_if; "
        f"load_all_if({files}); print(*(name in sys.modules for name in {late}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [str(loaded)] * 3


ROOM = """
import resource, sys
from pathlib import Path
from magnetar.process.descriptors import make_room
files, connections = map(int, sys.argv[1:])
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (files if files >= 0 else hard, hard))
before = set(Path("/proc/self/fd").iterdir())
make_room(files, connections)
print(len(before ^ set(Path("/proc/self/fd").iterdir())))
print(Path("/proc/self/status").read_text().partition("FDSize:")[2].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the size of the table")
@pytest.mark.parametrize(
    ("files", "connections", "least", "most"),
    [(3_000, 2_000, 2_000, 4_096), (500, 10_000, 500, 1_024), (-1, 2_000, 2_000, 4_096)],
)
def test_the_table_of_descriptors_has_room(
    files: int, connections: int, least: int, most: int
) -> None:
    command = [sys.executable, "-c", ROOM, str(files), str(connections)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    changed, size = map(int, said.stdout.split())
    assert not changed
    assert least <= size <= most
