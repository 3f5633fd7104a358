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

Damage = Callable[[Path], object]

PORTS = ("--pulsar-port", "0", "--kafka-port", "0", "--http-port", "0")


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


DAMAGES: dict[str, tuple[Damage, str]] = {
    "metadata is noise": (_each("metadata", b"noise" * 2000), "metadata cannot be opened"),
    "metadata is cut off": (
        lambda data: (data / "metadata").write_bytes((data / "metadata").read_bytes()[:100]),
        "metadata cannot be opened",
    ),
    "metadata is lost": (_remove("metadata"), "belongs to another bookie"),
    "bookie is lost": (_remove("bookie"), "has stored entries before"),
    "bookie is a file": (lambda data: _replace_by_file(data / "bookie"), "File exists"),
    "cookie is noise": (_each("VERSION", b"noise"), "it is no bookie's"),
    "index is noise": (_each("CURRENT", b"noise"), "cannot be opened"),
    "mark is cut off": (_each("lastMark", b"abc"), "a mark has 16 bytes"),
    "journal is lost": (_remove("bookie/journal/current/*.txn"), "lacks the journal"),
    "journal is noise": (_each("*.txn", b"noise" * 2000), "does not begin like a journal"),
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
        [sys.executable, "-P", "-m", "magnetar", "standalone", *PORTS, "--data-dir", str(data)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"magnetar: cannot use the data in {data}: "), done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
