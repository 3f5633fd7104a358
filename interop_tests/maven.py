"""Maven projects of the tests: built once, and again when what they are made of has changed.

A machine without JDK or Maven fails the tests and says so: they are a promise, and one that is
skipped is not kept.
"""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD_SECONDS = 600


def build(folder: Path) -> Path:
    """Compile what is in `folder` and gather its jars; where Maven put all that. One at a time, as
    tests run in several processes.
    """
    with (folder / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _built(folder)


def _built(folder: Path) -> Path:
    digest = hashlib.sha256()
    for source in sorted([folder / "pom.xml", *folder.glob("src/**/*.java")]):
        digest.update(source.read_bytes())
    target = folder / "target"
    stamp = target / "built"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return target
    done = subprocess.run(
        [found("mvn"), "-q", "-B", "clean", "package"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"Maven did not build {folder}:\n{done.stdout}\n{done.stderr}")
    stamp.write_text(digest.hexdigest())
    return target


def found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"these tests need a JDK and Maven: there is no {program} here")
    return path
