"""`magnetar user`."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from click.testing import CliRunner, Result

from magnetar.cli.security.user import user
from magnetar.core.security.htpasswd.password_hashes import fits
from magnetar.core.security.htpasswd.passwords import people_in


def run(*words: str | Path, said: str = "") -> Result:
    return CliRunner().invoke(user, [str(word) for word in words], input=said)


def hashes(file: Path) -> dict[str, str]:
    return people_in(file.read_text())[0]


def test_people_come_and_go(tmp_path: Path) -> None:
    file = tmp_path / "people"
    assert run("add", file, "ali", "--password-stdin", said="sesame\n").exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("add", file, "bob", said="open\nopen\n").exit_code == 0
    assert fits(b"sesame", hashes(file)["ali"])
    assert fits(b"open", hashes(file)["bob"])
    assert run("passwd", file, "bob", "--password-stdin", said="shut").exit_code == 0
    assert fits(b"shut", hashes(file)["bob"])
    assert run("list", file).stdout == "ali\nbob\n"
    assert json.loads(run("list", "--json", file).stdout) == ["ali", "bob"]
    assert run("remove", file, "ali").exit_code == 0
    assert list(hashes(file)) == ["bob"]


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    file = tmp_path / "people"
    run("add", file, "ali", "--password-stdin", said="sesame")
    for words, said, refusal in (
        (("add", file, "ali"), "", "ali is in"),
        (("passwd", file, "eve"), "", "eve is not in"),
        (("remove", file, "eve"), "", "eve is not in"),
        (("list", tmp_path / "none"), "", "cannot read"),
        (("add", file, "a:b", "--password-stdin"), "x", "without a colon"),
        (("add", file, " a", "--password-stdin"), "x", "is printable"),
        (("add", file, "bob", "--password-stdin"), "", "1 to 72 bytes"),
        (("add", file, "bob", "--password-stdin"), "x" * 73, "1 to 72 bytes"),
    ):
        assert refusal in str(run(*words, said=said).exception), words
    assert list(hashes(file)) == ["ali"]
