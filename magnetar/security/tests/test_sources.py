"""Keys and passwords: read, read again, and what happens if they cannot be."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from magnetar.operator_error import OperatorError
from magnetar.security.sources import SecretSource, owner_only, read_data_url


@pytest.mark.parametrize(
    ("url", "held"),
    [
        ("data:;base64,aGk=", b"hi"),
        ("data:application/octet-stream;base64,aGk%3D", b"hi"),
        ("data:,a%20b", b"a b"),
    ],
)
def test_data_urls(url: str, held: bytes) -> None:
    assert read_data_url(url) == held


@pytest.mark.parametrize("url", ["data:", "data:;base64", "data:;base64,!"])
def test_what_is_no_data_url(url: str) -> None:
    with pytest.raises(ValueError, match="data"):
        read_data_url(url)


class Held:
    """Takes values that begin with `k`."""

    def __init__(self) -> None:
        self.value = b""

    def take(self, raw: bytes) -> None:
        if not raw.startswith(b"k"):
            raise ValueError("it is no key")
        self.value = raw


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_file_is_read_again_when_it_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    caplog.set_level(logging.INFO)
    path, held = tmp_path / "key", Held()
    owner_only(path, b"k1")
    source = SecretSource("security.token_secret_key", form.format(path), held.take)
    source.open()
    source.look()
    assert (held.value, caplog.messages) == (b"k1", [])
    owner_only(path, b"k2")
    source.look()
    assert held.value == b"k1", "it may be still being written"
    source.look()
    assert held.value == b"k2"
    owner_only(path, b"bad")
    for _ in range(2):
        source.look()
    assert held.value == b"k2"
    path.unlink()
    for _ in range(2):
        source.look()
    owner_only(path, b"k3")
    for _ in range(2):
        source.look()
    assert held.value == b"k3"
    assert [message.split(": ", 1)[1] for message in caplog.messages] == [
        f"{path} has changed and is read again",
        f"{path} is not taken, what it held before stays in force: it is no key",
        f"{path} is not taken, what it held before stays in force: No such file or directory",
        f"{path} has changed and is read again",
    ]


def test_what_cannot_be_read_at_the_start(tmp_path: Path) -> None:
    for where, said in (
        (str(tmp_path / "none"), "security.x: cannot read .*none: No such file"),
        ("data:,bad", "security.x: the data: URL: it is no key"),
    ):
        with pytest.raises(OperatorError, match=said) as refused:
            SecretSource("security.x", where, Held().take).open()
        assert "bad" not in str(refused.value), "a secret is in no message"


def test_a_secret_that_others_may_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"k")
    path.chmod(0o644)
    SecretSource("security.token_public_key", str(path), Held().take).open()
    assert caplog.messages == []
    SecretSource("security.htpasswd", str(path), Held().take).open()
    (line,) = caplog.messages
    assert "others may read" in line
    assert "chmod 600" in line


def test_a_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"before")
    before = os.umask(0)
    try:
        owner_only(path, b"after")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_being_written_is_left_until_it_is_whole(tmp_path: Path) -> None:
    """A prefix of rules may allow what the rest denies."""
    path, held = tmp_path / "key", Held()
    owner_only(path, b"k1")
    source = SecretSource("security.token_secret_key", str(path), held.take)
    source.open()
    for size in range(1, 5):
        path.write_bytes(b"k" * size)
        source.look()
        assert held.value == b"k1"
    source.look()
    assert held.value == b"kkkk"
