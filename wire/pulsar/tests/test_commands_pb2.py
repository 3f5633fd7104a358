"""The compiled definitions are those of commands.proto."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from wire.pulsar import commands_pb2 as pb

TOP = Path(__file__).resolve().parents[3]


def test_what_is_committed_is_fresh(tmp_path: Path) -> None:
    subprocess.run(
        ["scripts/protoc", str(tmp_path)], cwd=TOP, check=True, env={"PYTHON": sys.executable}
    )
    for name in ("commands_pb2.py", "commands_pb2.pyi"):
        fresh = (tmp_path / "wire/pulsar" / name).read_text()
        assert without_version(fresh) == without_version((TOP / "wire/pulsar" / name).read_text())


def without_version(text: str) -> str:
    """Another release of the compiler writes its own number, and that is all right."""
    text = re.sub(r"# Protobuf Python Version: .*", "", text)
    return re.sub(r"(?s)_runtime_version\.Domain\.PUBLIC.*?\)", "", text)


COMPILED = ("bookie/proto/storage_pb2.py", "core/ledger/formats_pb2.py", "wire/pulsar/commands_pb2.py")


@pytest.mark.parametrize("name", COMPILED)
def test_the_oldest_protobuf_that_is_allowed_reads_it(name: str) -> None:
    """A newer compiler makes what only newer libraries load."""
    version = re.search(r"# Protobuf Python Version: ([\d.]+)", (TOP / name).read_text())
    needed = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["dependencies"]
    (floor,) = [one.partition(">=")[2] for one in needed if one.startswith("protobuf")]
    assert version is not None
    assert version[1].split(".")[:2] == floor.split(".")[:2]


def test_a_command_sits_in_the_field_of_its_types_number() -> None:
    fields = pb.BaseCommand.DESCRIPTOR.fields_by_number
    for name, number in pb.BaseCommand.Type.items():
        assert fields[number].name == name.lower()
