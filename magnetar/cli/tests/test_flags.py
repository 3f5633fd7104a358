"""Options and settings are the same list, and the environment is read."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from magnetar.cli.flags import load_settings, setting_options
from magnetar.cli.root import root
from magnetar.operator_error import OperatorError
from magnetar.settings import FLAGS

NONE = {flag[2:].replace("-", "_"): None for flag in FLAGS}


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("MAGNETAR_"):
            monkeypatch.delenv(name)


def test_there_is_an_option_for_each_flag() -> None:
    assert [option.opts for option in setting_options()] == [["--config"], *([f] for f in FLAGS)]


def test_file_environment_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.toml"
    file.write_text("[listen]\nhost = '::1'\nhttp_port = 1")
    monkeypatch.setenv("MAGNETAR_LISTEN_HTTP_PORT", "2")
    loaded = load_settings(str(file), NONE | {"pulsar_port": "0", "no_sync": True})
    assert loaded.settings.listen.host == "::1"
    assert loaded.settings.listen.http_port == 2
    assert loaded.settings.listen.pulsar_port == 0
    assert loaded.settings.storage.sync is False


def test_a_switch_that_is_not_given_says_nothing() -> None:
    assert load_settings(None, NONE | {"no_sync": False}).origins == {}


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"cannot read the configuration .*: No such file"):
        load_settings(str(tmp_path / "none.toml"), NONE)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(OperatorError, match="is not UTF-8 text"):
        load_settings(str(file), NONE)


@pytest.mark.parametrize(
    "words", [["bookie", "--port"], ["bookie", "--http-port"], ["recovery", "--http-port"]]
)
@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_port_is_one(words: list[str], port: str) -> None:
    """The socket would take the lowest 16 bits of it."""
    result = CliRunner().invoke(root, [*words, port])
    assert result.exit_code == 2
    assert f"{port} is not in the range 0<=x<=65535" in result.output


def test_what_is_no_number_is_said_to_be_none() -> None:
    for words, said in (
        (["ledger", "metadata", "x"], "'x' is not a valid whole number"),
        (["recovery", "--zk-timeout", "x"], "'x' is not a valid number"),
    ):
        assert said in CliRunner().invoke(root, words).output
