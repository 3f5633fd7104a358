"""What storage cannot open is the operator's to mend: a sentence and exit 2.

That everything is joined rightly is seen by every test with a whole server; here are the data
directories that somebody or something has damaged.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import magnetar
from magnetar.child import FREE_PORTS

STANDALONE = (sys.executable, "-P", "-m", "magnetar", "standalone", *FREE_PORTS)

Damage = Callable[[Path], object]


def _replace_by_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("what was here?")


def _each(pattern: str, content: bytes) -> Damage:
    """Overwrite all files of that name, of which there must be some."""

    def damage(data: Path) -> None:
        found = list(data.rglob(pattern))
        assert found, pattern
        for path in found:
            path.write_bytes(content)

    return damage


def _remove(pattern: str) -> Damage:
    def damage(data: Path) -> None:
        found = list(data.glob(pattern))
        assert found, pattern
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def _cut(pattern: str, size: int) -> Damage:
    def damage(data: Path) -> None:
        found = list(data.glob(pattern))
        assert found, pattern
        for path in found:
            path.write_bytes(path.read_bytes()[:size])

    return damage


def _former(data: Path) -> None:
    """As if no version with a history had run here yet."""
    _remove("metadata.*")(data)
    (data / "metadata").write_bytes(b"noise" * 2000)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "metadata log is noise": (_each("metadata.1.log", b"noise" * 2000), "its head is damaged"),
    "metadata log is cut off": (_cut("metadata.1.log", 300), "were acknowledged. Restore"),
    "metadata log is lost": (_remove("metadata.1.log"), "is missing. Restore"),
    "metadata mark is noise": (_each("metadata.end", b"noise" * 2000), "magnetar metadata repair"),
    "metadata mark is lost": (_remove("metadata.end"), "nobody knows where the metadata ends"),
    "metadata is lost": (_remove("metadata.*"), "its metadata is lost"),
    "former metadata is noise": (_former, "metadata cannot be opened"),
    "bookie is lost": (_remove("bookie"), "has stored entries before"),
    "bookie is a file": (lambda data: _replace_by_file(data / "bookie"), "File exists"),
    "cookie is noise": (_each("VERSION", b"noise"), "it is no bookie's"),
    "cookie is lost": (_remove("bookie/journal/current/VERSION"), "copy VERSION from"),
    "mark is cut off": (_each("lastMark", b"abc"), "a mark has 16 bytes"),
    "journal is lost": (_remove("bookie/journal/current/*.txn"), "lacks the journal"),
    "journal is cut": (_cut("bookie/journal/current/*.txn", 512), "magnetar bookie repair"),
    "journal is noise": (_each("*.txn", b"noise" * 100_000), "does not begin like a journal"),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a server has run and stopped in order."""
    data = tmp_path_factory.mktemp("used") / "data"
    with magnetar.standalone(data):
        pass
    return data


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_directory_is_refused_in_one_sentence(
    used: Path, tmp_path: Path, what: str
) -> None:
    damage, words = DAMAGES[what]
    data = tmp_path / "data"
    shutil.copytree(used, data)
    damage(data)
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "magnetar",
            "standalone",
            *FREE_PORTS,
            "--data-dir",
            str(data),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"magnetar: cannot use the data in {data}: "), done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
