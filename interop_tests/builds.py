"""Programs of the tests in other languages: built once, and again when their sources change.

A machine that lacks a tool fails the tests and says so: they are a promise, and one that is skipped
is not kept.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

BUILD_SECONDS = 600


def once(folder: Path, sources: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """Where `make` has put what is made of these sources; it is told where. One at a time, as tests
    run in several processes.
    """
    with (folder / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = hashlib.sha256()
        for source in sorted(sources):
            digest.update(source.read_bytes())
        target = folder / "target"
        stamp = target / "built"
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            make(target)
            stamp.write_text(digest.hexdigest())
        return target


def run(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a tool prints that runs in that folder; if it fails the tests fail."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{' '.join(command)} failed in {folder}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def found(program: str, needs: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"these tests need {needs}: there is no {program} here")
    return path
