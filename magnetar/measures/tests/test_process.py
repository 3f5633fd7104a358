"""What the system says of this process."""

import os
import resource
import time
from pathlib import Path

import pytest

from magnetar.measures import process


def results() -> dict[str, float]:
    return {
        family.name: float(sample.rpartition(" ")[2])
        for family in process.families()
        for sample in family.samples
    }


def test_the_usual_figures() -> None:
    found = results()
    assert found["process_cpu_seconds_total"] > 0
    assert 0 <= time.time() - found["process_start_time_seconds"] < 36_000
    assert found["process_max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_resident_memory_bytes"] < found["process_virtual_memory_bytes"]
    before = found["process_open_fds"]
    file = os.open(os.devnull, os.O_RDONLY)
    assert results()["process_open_fds"] == before + 1
    os.close(file)


def test_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "PROC", tmp_path / "none")
    found = results()
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert "process_open_fds" not in found
