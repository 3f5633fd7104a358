"""`magnetar access`, at a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from click.testing import CliRunner, Result

from magnetar import Standalone, standalone
from magnetar.cli.security.access import access
from magnetar.operator_error import OperatorError

SECRET = b"a secret of thirty-two bytes....."
FULL = "persistent://public/default/orders"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("access")
    for name in ("root", "eve"):
        (made / name).write_text(jwt.encode({"sub": name}, SECRET) + "\n")
    key = made / "key"
    key.write_bytes(SECRET)
    key.chmod(0o600)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Standalone]:
    settings = {"token_secret_key": str(folder / "key"), "superusers": ["root"]}
    with standalone(security=settings) as server:
        yield server


class Shell:
    """Runs the command against one server."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def run(self, command: str, *words: str, who: str = "root") -> Result:
        options = ["--url", self.url, "--token-file", str(self.folder / who)]
        return CliRunner().invoke(access, [command, *options, *words])

    def says(self, command: str, *words: str, code: int = 0) -> str:
        found = self.run(command, *words)
        assert found.exit_code == code, (found.output, found.exception)
        return found.stdout.strip()

    def fails(self, command: str, *words: str, who: str = "root") -> str:
        found = self.run(command, *words, who=who)
        assert isinstance(found.exception, OperatorError), found.output
        return str(found.exception)


@pytest.fixture
def shell(server: Standalone, folder: Path) -> Shell:
    return Shell(server.http_url, folder)


def test_permissions_come_and_go(shell: Shell) -> None:
    asked = "ali", "produce", "orders"
    assert shell.says("check", *asked, code=1) == "denied: no rule allows it"
    assert shell.says("grant", *asked) == "ali may produce orders"
    allowed = f"allowed: the permission produce of topic {FULL}"
    assert shell.says("check", *asked) == allowed
    assert shell.says("check", "ali", "write", FULL) == allowed
    assert shell.says("check", "bob", "write", FULL, "--role", "ali", "--host", "h") == allowed
    taken = "the permission to produce orders is not ali's any more"
    assert shell.says("revoke", *asked) == taken
    shell.says("grant", "ali", "write", "public/default")
    still = ", who still may, by the permission produce of namespace public/default"
    assert shell.says("revoke", *asked) == taken + still
    shell.says("revoke", "ali", "produce", "public/default")
    assert shell.says("check", *asked, code=1) == "denied: no rule allows it"


def test_of_namespaces(shell: Shell) -> None:
    shell.says("grant", "team/a b", "consume", "public/default")
    words = "team/a b", "consume", "a/b/c"
    assert "no rule" in shell.says("check", *words, code=1)
    found = json.loads(shell.says("check", "--json", "--subscription", "s", *words[:2], "x"))
    assert found == {
        "allowed": True,
        "rule": "the permission consume of namespace public/default",
    }
    shell.says("revoke", "team/a b", "consume", "public/default")


def test_mistakes_are_sentences(shell: Shell, folder: Path) -> None:
    assert "is neither a topic" in shell.fails("grant", "ali", "produce", "a://b")
    assert "is a namespace" in shell.fails("check", "ali", "produce", "public/default")
    assert "must be one of" in shell.fails("check", "ali", "fly", "orders")
    said = shell.fails("grant", "eve", "produce", "orders", who="eve")
    assert said == f"{shell.url} refuses that: eve may not alter tenant public"
    (folder / "wrong").write_text("x")
    said = shell.fails("check", "eve", "produce", "orders", who="wrong")
    assert said.startswith(f"{shell.url} wants to know who you are: ")
    assert "x" not in said.partition("who you are: ")[2].split()
    nobody = Shell("http://127.0.0.1:1", folder)
    assert "refused" in nobody.fails("check", "eve", "produce", "orders")
    assert "(--url says where" in nobody.fails("check", "eve", "produce", "orders")
    (folder / "bytes").write_bytes(b"\xff\x00")
    assert "holds no token" in shell.fails("check", "eve", "produce", "orders", who="bytes")
    assert "is no role" in shell.fails("grant", "", "produce", "orders")
    assert "is no URL" in Shell("localhost:8080", folder).fails("check", "e", "produce", "o")
    assert shell.run("grant", "ali", "fly", "orders").exit_code == 2
