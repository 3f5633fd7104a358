"""The file of the audit trail: rotation, other programs, a full disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from magnetar.core.testing.clock import FixedClock
from magnetar.operator_error import OperatorError
from magnetar.security.audit_file import LOOK_SECONDS, AuditFile


def opened(path: Path, bytes_max: int = 1_000, former_max: int = 2) -> AuditFile:
    return AuditFile(path, bytes_max, former_max, FixedClock())


def test_lines_are_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    file = opened(path)
    file.write(b"1\n")
    assert path.read_bytes() == b"1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()
    file = opened(path)
    file.write(b"2\n")
    assert path.read_bytes() == b"1\n2\n"
    file.close()


def test_rotation(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    file = opened(path, bytes_max=4)
    for number in range(9):
        file.write(b"%d\n" % number)
    found = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert found == {"audit": b"8\n", "audit.1": b"6\n7\n", "audit.2": b"4\n5\n"}
    file.write(b"a line that is larger than a file\n")
    assert path.read_bytes() == b"a line that is larger than a file\n"
    file.close()


def test_no_former_files(tmp_path: Path) -> None:
    file = opened(tmp_path / "audit", bytes_max=2, former_max=0)
    for number in range(3):
        file.write(b"%d\n" % number)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"audit": b"2\n"}
    file.close()


def test_another_program_moves_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "audit", FixedClock()
    file = AuditFile(path, 1_000, 2, clock)
    file.write(b"1\n")
    path.rename(tmp_path / "moved")
    clock.forward(LOOK_SECONDS)
    file.write(b"2\n")
    assert path.read_bytes() == b"2\n"
    assert (tmp_path / "moved").read_bytes() == b"1\n"
    file.close()


def test_two_servers_share_one(tmp_path: Path) -> None:
    """Neither writes on into a file that the other has rotated away, nor loses a line."""
    path, clock = tmp_path / "audit", FixedClock()
    files = [AuditFile(path, 100, 50, clock) for _ in range(2)]
    for number in range(200):
        files[number % 3 % 2].write(b"%d\n" % number)
        clock.forward(LOOK_SECONDS / 3)
    lines = [line for each in tmp_path.iterdir() for line in each.read_bytes().splitlines()]
    assert sorted(map(int, lines)) == list(range(200))
    for file in files:
        file.close()


def test_a_full_disk_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Linux has a device that is always full."""
    file = AuditFile(Path("/dev/full"), 1_000, 2, FixedClock())
    for _ in range(3):
        file.write(b"1\n")
    assert file.lost == 3
    assert caplog.text.count("lines are lost") == 1
    file.close()


def test_it_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"security\.audit_log: cannot write .*: No such"):
        opened(tmp_path / "none" / "audit")
    assert os.listdir(tmp_path) == []


def test_a_fifo_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "audit")
    with pytest.raises(
        OperatorError, match=r"security\.audit_log: cannot write .*: No such device"
    ):
        opened(tmp_path / "audit")
