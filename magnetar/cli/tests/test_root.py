"""The commands as users type them."""

import platform
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import magnetar
from magnetar.cli.root import root


def test_version() -> None:
    result = CliRunner().invoke(root, ["version"])
    assert result.output.startswith(f"magnetar {magnetar.__version__} (Python ")
    assert platform.python_version() in result.output
    assert "\ncodec: compiled\n" in result.output or "\ncodec: pure (" in result.output


def test_the_flag_says_what_the_command_says() -> None:
    said = [CliRunner().invoke(root, [word]).output for word in ("version", "--version")]
    assert said[0] == said[1]


def test_the_help_names_every_protocol() -> None:
    for arguments in (["--help"], ["standalone", "--help"]):
        said = CliRunner().invoke(root, arguments).output
        about = said.partition("Options:")[0]
        for protocol in ("Pulsar", "Kafka", "MQTT"):
            assert protocol in about


def test_the_version_is_the_packages() -> None:
    pyproject = Path(magnetar.__file__).parents[1] / "pyproject.toml"
    assert tomllib.loads(pyproject.read_text())["project"]["version"] == magnetar.__version__


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "magnetar", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", [["standalone"], ["config", "check"], ["config", "show"]])
def test_a_bad_setting_is_a_sentence_and_exit_2(command: list[str]) -> None:
    result = _run(*command, "--pulsar-port", "no")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        "magnetar: --pulsar-port: listen.pulsar_port: "
        "expected a whole number from -1 to 65535, got 'no'\n"
    )


def test_an_unknown_flag_is_a_sentence_and_exit_2() -> None:
    result = _run("standalone", "--pulsar-prt", "1")
    assert result.returncode == 2
    assert result.stderr.startswith("magnetar: no such option")
    assert "--pulsar-port" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["standalon"], "magnetar: no such command 'standalon'"),
        (["standalone", "--data-dir"], "magnetar: option '--data-dir' requires an argument"),
        (["standalone", "what"], "magnetar: got unexpected extra argument (what)"),
    ],
)
def test_a_command_that_makes_no_sense(arguments: list[str], sentence: str) -> None:
    result = _run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == 1


def test_help() -> None:
    for arguments, first in (
        (["--help"], "Usage: magnetar ["),
        (["config", "-h"], "Usage: magnetar config"),
    ):
        result = _run(*arguments)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith(first)
    assert _run().returncode == 2


def test_starting_is_not_slowed_by_what_a_server_does_not_need() -> None:
    heavy = (
        "rich",
        "starlette",
        "hypercorn",
        "cryptography",
        "hypothesis",
        "pytest",
        "trio",
        "kazoo",
    )
    code = (
        "import sys, magnetar.cli.root; "
        f"sys.stdout.write(', '.join(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")
