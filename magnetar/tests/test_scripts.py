"""What `scripts/serve` and `scripts/test` say when the system lacks something: one sentence."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDS = ("sh", "id", "dirname", "cat")
"""What the scripts use themselves, besides what they look for."""
LIBRDKAFKA = Path("/usr/include/librdkafka/rdkafka.h")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of programs that is a system with nothing on it; tests add to it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDS:
        (folder / name).symlink_to(next(p for p in map(Path, _found(name)) if p.exists()))
    return folder


def _found(name: str) -> list[str]:
    return [f"{folder}/{name}" for folder in os.environ["PATH"].split(os.pathsep)]


def _add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def _say(bare: Path, commands: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs commands with the scripts' own functions at hand, on that system."""
    return subprocess.run(
        [bare / "sh", "-euc", f". '{ROOT}/scripts/environment.sh'\n{commands}"],
        env={"PATH": str(bare), **environment},
        cwd=bare,
        capture_output=True,
        text=True,
        check=False,
    )


FIND = "find_python; bring; install_magnetar ''"


def _sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_no_python(bare: Path) -> None:
    assert _sentence(_say(bare, FIND)) == (
        "magnetar: missing: Python 3.11 or newer; run 'apt-get install -y --no-install-recommends "
        "python3 python3-venv' as root, or give leave with --apt"
    )


def test_an_old_python(bare: Path) -> None:
    _add(bare, "python3", 'case "$1" in -V) echo Python 3.9.2 ;; *) exit 1 ;; esac')
    assert _sentence(_say(bare, FIND)) == (
        "magnetar: Python 3.11 or newer is needed; name one with PYTHON=..., "
        "python3 is Python 3.9.2"
    )


def test_a_python_without_venv(bare: Path) -> None:
    _add(bare, "python3", 'case "$*" in *ensurepip*) exit 1 ;; esac')
    said = _sentence(_say(bare, FIND))
    assert said.startswith("magnetar: missing: Python's venv module; run 'apt-get install")
    assert "python3-venv" in said


def test_leave_on_another_system(bare: Path) -> None:
    said = _sentence(_say(bare, FIND, MAGNETAR_APT="1"))
    assert said == "magnetar: missing: Python 3.11 or newer; there is no apt-get to bring it"


def test_leave_is_made_use_of(bare: Path) -> None:
    """As root at once, else by way of sudo."""
    _add(bare, "apt-get", 'echo "apt-get $*" >> asked')
    _add(bare, "env", 'shift; "$@"')
    _add(bare, "sudo", 'echo "sudo $*" >> asked; "$@"')
    for name in ("sleep", "kill"):
        _add(bare, name, "")
    done = _say(bare, "lack 'a thing' one; lack another two; bring", MAGNETAR_APT="1")
    assert done.returncode == 0, done.stderr
    requested = (bare / "asked").read_text().splitlines()
    assert requested[-1] == "apt-get install -y --no-install-recommends one two"
    assert "apt-get update -qq" in requested
    assert any(line.startswith("sudo ") for line in requested) == (os.geteuid() != 0)


def test_what_compiles_is_brought_where_it_is_missing_whatever_was_installed_before(
    bare: Path,
) -> None:
    """A stamp that said "pure" kept code from being compiled for ever."""
    _add(bare, "apt-get", 'echo "apt-get $*" >> asked')
    _add(bare, "env", 'shift; "$@"')
    _add(bare, "sudo", '"$@"')
    for name in ("sleep", "kill"):
        _add(bare, name, "")
    _add(bare, "python3", 'case "$*" in *Python.h*) exit 1 ;; esac')
    done = _say(bare, "find_python; lack_compiler; bring", MAGNETAR_APT="1")
    assert done.returncode == 0, done.stderr
    requested = (bare / "asked").read_text().splitlines()
    assert requested[-1].endswith("gcc libc6-dev python3-dev")


def test_a_test_run_names_all_that_it_lacks_at_once(bare: Path) -> None:
    """The script up to its first check, as if it had found its place and installed all else."""
    lines = (ROOT / "scripts" / "test").read_text().splitlines()
    lines = [line for line in lines if not line.startswith(("cd ", ". ", "install_magnetar"))]
    said = _sentence(_say(bare, "\n".join(lines[: lines.index("failed=")])))
    lacks = ["Python 3.11 or newer", "a JDK", "Maven", "Go", "Node and npm"]
    lacks += ["a C compiler", "Python's headers", "make"]
    lacks += ["kcat"] if LIBRDKAFKA.exists() else ["librdkafka's headers", "kcat"]
    lacks += ["mosquitto's clients"]
    assert said.startswith(f"magnetar: missing: {', '.join(lacks)}; run 'apt-get install")
    assert said.endswith("with --no-java, --no-go, --no-node")
