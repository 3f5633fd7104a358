"""`magnetar token`."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import jwt
import pytest
from click.testing import CliRunner, Result

from magnetar.cli.security.token import token


def run(*words: str | Path, said: str = "") -> Result:
    return CliRunner().invoke(token, [str(word) for word in words], input=said)


def printed(*words: str | Path, said: str = "") -> str:
    found = run(*words, said=said)
    assert found.exit_code == 0, found.output or found.exception
    return found.stdout.strip()


def test_a_secret_and_its_tokens(tmp_path: Path) -> None:
    key = tmp_path / "key"
    printed("create-key", key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    made = printed("create", "--secret-key", key, "--subject", "ali", "--expiry-time", "1h")
    claims = jwt.decode(made, key.read_bytes(), ["HS256"])
    assert (claims["sub"], claims["exp"] - claims["iat"]) == ("ali", 3600)
    assert printed("validate", "--secret-key", key, said=made).startswith("ali, until ")
    refused = run("validate", "--secret-key", key, said=made[:-3])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "signature is wrong" in refused.stderr
    assert json.loads(printed("show", "--json", made))["payload"]["sub"] == "ali"
    assert "sub: ali" in printed("show", said=made)


def test_a_key_pair(tmp_path: Path) -> None:
    key = tmp_path / "key"
    printed("create-key", "--pair", key)
    made = printed("create", "--private-key", f"file://{key}", "--subject", "ali", "--issuer", "us")
    public = tmp_path / "key.pub"
    assert printed("validate", "--public-key", public, made) == "ali, for ever"
    assert printed("validate", "--public-key", public, "--issuer", "us", made)
    assert run("validate", "--public-key", public, "--issuer", "them", made).exit_code == 1


def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    key = tmp_path / "key"
    printed("create-key", key)
    before = key.read_bytes()
    assert "would become invalid" in str(run("create-key", key).exception)
    assert key.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "--subject", "a"), "name one key"),
        (("create", "--subject", "a", "--secret-key", "data:,x"), "32 bytes or more"),
        (("create", "--subject", "a", "--private-key", "data:,x"), "no private key"),
        (("create", "--subject", "a", "--secret-key", "/none"), "cannot read /none"),
        (("validate", "--public-key", "data:,x", "t"), "no public key"),
        (("show", "x"), "it is no token"),
    ],
)
def test_mistakes_are_sentences(words: tuple[str, ...], said: str) -> None:
    assert said in str(run(*words).exception)


def test_durations() -> None:
    found = run("create", "--subject", "a", "--secret-key", "data:,x", "--expiry-time", "1 hour")
    assert found.exit_code == 2
    assert "no duration such as 30s" in found.output
