"""Compiled protobuf definitions are those of their .proto files."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path.relative_to(ROOT)
    for room in ("bookie", "core", "wire")
    for path in (ROOT / room).rglob("*.proto")
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which everything was compiled just now."""
    folder = tmp_path_factory.mktemp("compiled")
    subprocess.run(
        ["scripts/protoc", str(folder)], cwd=ROOT, check=True, env={"PYTHON": sys.executable}
    )
    return folder


@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize("suffix", [".py", ".pyi"])
def test_what_is_committed_is_fresh(compiled: Path, source: Path, suffix: str) -> None:
    name = source.with_name(f"{source.stem}_pb2{suffix}")
    fresh = (compiled / "magnetar" / name).read_text()
    assert _without_version(fresh) == _without_version((ROOT / name).read_text())


def _without_version(text: str) -> str:
    """Another release of the compiler writes its number, and its own types of optional fields."""
    text = re.sub(r"_Optional\[(\w+)\] = ", r"\1 = ", text)
    text = re.sub(r"# Protobuf Python Version: .*", "", text)
    return re.sub(r"(?s)_runtime_version\.Domain\.PUBLIC.*?\)", "", text)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_oldest_protobuf_that_is_allowed_reads_it(source: Path) -> None:
    """A newer compiler makes what only newer libraries load."""
    text = (ROOT / source.with_name(f"{source.stem}_pb2.py")).read_text()
    version = re.search(r"# Protobuf Python Version: ([\d.]+)", text)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (floor,) = [one.partition(">=")[2] for one in needed if one.startswith("protobuf")]
    assert version is not None
    assert version[1].split(".")[:2] == floor.split(".")[:2]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_names_are_ours_alone(source: Path) -> None:
    """A process has one pool of files and messages for all of its packages."""
    compiled = (ROOT / source.with_name(f"{source.stem}_pb2.py")).read_text()
    assert f"# source: magnetar/{source.as_posix()}" in compiled
    assert re.search(r"^package magnetar\.", (ROOT / source).read_text(), re.MULTILINE)
