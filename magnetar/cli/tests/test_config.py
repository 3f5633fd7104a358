"""`magnetar config`: what it shows loads again, and what it checks is what a server would read."""

from pathlib import Path

from click.testing import CliRunner

from magnetar.cli.root import root
from magnetar.settings import load


def test_config_show_prints_what_loads_again() -> None:
    result = CliRunner().invoke(root, ["config", "show", "--http-port", "0"])
    assert result.exit_code == 0
    assert "http_port = 0  # --http-port" in result.output
    assert load(result.output).settings == load("[listen]\nhttp_port = 0").settings


def test_config_check_is_content(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text("[broker]\nmax_message_size = 1000")
    result = CliRunner().invoke(root, ["config", "check", "--config", str(file)])
    assert (result.exit_code, result.output) == (0, "ok\n")


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text("[broker]\nmax_message_size = 1000")
    result = CliRunner().invoke(root, ["config", "show"], env={"MAGNETAR_CONFIG": str(file)})
    assert f"max_message_size = 1000  # {file}" in result.output
