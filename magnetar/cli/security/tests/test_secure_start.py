"""`magnetar config init --secure` and `issue`; `interop_tests/security` does what they print."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509

from magnetar.cli.root import root
from magnetar.operator_error import OperatorError
from magnetar.settings import load


def run(*words: str) -> str:
    result = CliRunner().invoke(root, ["config", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def made(folder: Path, *words: str) -> str:
    return run("init", "--secure", str(folder), *words)


def names_of(path: Path) -> list[str]:
    found = x509.load_pem_x509_certificate(path.read_bytes())
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(each.value) for each in extension.value]


def test_without_a_host_it_is_for_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "team"
    shown = made(folder)
    settings = load((folder / "magnetar.toml").read_text(), str(folder / "magnetar.toml")).settings
    assert (settings.listen.host, settings.listen.advertised_host) == ("127.0.0.1", "localhost")
    assert "https://localhost:8443" in shown
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_for_others(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    made(folder, "--host", "mq.example.org", "--host", "10.0.0.1", "--admin", "ops")
    settings = load((folder / "magnetar.toml").read_text(), str(folder / "magnetar.toml")).settings
    listen, security = settings.listen, settings.security
    assert (listen.host, listen.advertised_host) == ("0.0.0.0", "mq.example.org")
    assert listen.http_allowed_hosts == ("10.0.0.1",)
    assert (listen.pulsar_port, listen.kafka_port, listen.mqtt_port, listen.mqtt_ws_port) == (
        -1, -1, -1, -1
    )  # fmt: skip
    assert (security.superusers, security.client_certificates) == (("ops",), True)
    assert names_of(folder / "server.pem") == [
        "mq.example.org", "10.0.0.1", "localhost", "127.0.0.1", "::1"
    ]  # fmt: skip
    assert (folder / "ops.token").is_file()


def test_what_is_there_stays(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    with pytest.raises(OperatorError, match="holds something already"):
        made(folder)
    assert [path.name for path in folder.iterdir()] == ["notes"]


@pytest.mark.parametrize("admin", ["", "a/b", "..", "-x", "ca", "server", "token", "a\nb", 'a"b'])
def test_names_that_are_refused(tmp_path: Path, admin: str) -> None:
    with pytest.raises(OperatorError, match="name"):
        made(tmp_path / "team", f"--admin={admin}")
    assert not (tmp_path / "team").exists()


def test_a_host_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="neither a host name nor an address"):
        made(tmp_path / "team", "--host", "a..b")
    assert not (tmp_path / "team").exists()


def test_issue(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    made(folder)
    assert "for the role ali, valid for 7 days" in run("issue", str(folder), "ali", "--days", "7")
    before = (folder / "server.pem").read_bytes()
    assert "for a server" in run("issue", str(folder), "server", "--host", "b.example.org")
    assert (folder / "server.pem").read_bytes() != before
    assert names_of(folder / "server.pem")[0] == "b.example.org"
    with pytest.raises(OperatorError, match="a server needs --host"):
        run("issue", str(folder), "server")
    with pytest.raises(OperatorError, match="has no authority"):
        run("issue", str(tmp_path), "ali")


def test_what_is_made_can_be_moved(tmp_path: Path) -> None:
    made(tmp_path / "before")
    folder = (tmp_path / "before").rename(tmp_path / "after")
    file = folder / "magnetar.toml"
    settings = load(file.read_text(), str(file)).settings
    tls, security = settings.tls, settings.security
    for path in (tls.certificate, tls.key, tls.client_ca, security.token_secret_key):
        assert Path(path).is_file(), path
    for path in (settings.storage.data_dir, security.audit_log):
        assert Path(path).parent == folder
    assert "before" not in file.read_text()
