"""`magnetar config`: what it shows loads again, and what it checks is what a server would read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from magnetar.cli.root import root
from magnetar.operator_error import OperatorError
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


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('[listen]\nhost = "0.0.0.0"', "other machines can reach 0.0.0.0"),
        ('[listen]\nhost = "no such host"', "is not an address of this machine"),
        ('[security]\nhtpasswd = "/none"', "security.htpasswd: cannot read /none"),
        ('[security]\ntoken_secret_key = "data:,short"', "32 bytes or more"),
        (
            '[security]\ntoken_secret_key = "data:,0123456789abcdef0123456789abcdef"\n'
            '[mqtt]\nacl_file = "/none"',
            "mqtt.acl_file: cannot read /none",
        ),
        ('[tls]\ncertificate = "/none"', "cannot read /none"),
    ],
)
def test_config_check_reads_what_the_start_reads(tmp_path: Path, toml: str, sentence: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(toml)
    result = CliRunner().invoke(root, ["config", "check", "--config", str(file)])
    assert isinstance(result.exception, OperatorError)
    assert sentence in str(result.exception)


def test_config_check_makes_nothing(tmp_path: Path) -> None:
    file, audit = tmp_path / "m.toml", tmp_path / "audit"
    file.write_text(f'[security]\naudit_log = "{audit}"')
    assert CliRunner().invoke(root, ["config", "check", "--config", str(file)]).exit_code == 0
    assert not audit.exists()
