"""How commands reach a server: who asks, and what goes wrong on the way."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from magnetar.cli.security.admin_server import TOKEN_VARIABLE, AdminServer, server_options
from magnetar.operator_error import OperatorError


class Echo(BaseHTTPRequestHandler):
    """Answers with what was asked; 418 is refused with a page of another kind."""

    def do_PUT(self) -> None:
        said = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = 418 if self.path == "/tea" else 200
        heard = {
            "who": self.headers.get("Authorization"),
            "said": said.decode(),
            "type": self.headers.get("Content-Type"),
        }
        body = b"<html>short and stout" if status == 418 else json.dumps(heard).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asked(*words: str, path: str = "/x", said: str = "", **environment: str) -> Any:
    """What the server heard from a command with these options."""
    found: list[Any] = []

    def run(*, as_json: bool, **options: Any) -> None:
        assert not as_json
        found.append(AdminServer(options).ask("PUT", path, {"a": 1}))
        assert options == {}, "all of them are taken"

    command = click.Command("x", callback=run, params=server_options())
    result = CliRunner().invoke(command, words, input=said, env=environment)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_who_asks(url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    assert asked("--url", url) == {"who": None, "said": '{"a": 1}', "type": "application/json"}
    assert asked("--url", url, **{TOKEN_VARIABLE: "xyz"})["who"] == "Bearer xyz"
    by_file = asked("--url", url, "--token-file", str(tmp_path / "token"), **{TOKEN_VARIABLE: "x"})
    assert by_file["who"] == "Bearer abc"
    by_name = asked("--login", "ali", said="söß:me\r\n", MAGNETAR_URL=url)
    assert base64.b64decode(by_name["who"].removeprefix("Basic ")).decode() == "ali:söß:me"


def test_what_goes_wrong(url: str, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\x00")
    for words, sentence in (
        (("--url", "localhost:8080"), "is no URL such as http://localhost:8080"),
        (("--url", "http://127.0.0.1:1"), "(--url says where the server is)"),
        (("--url", url, "--token-file", str(tmp_path / "bytes")), "holds no token"),
        (("--url", url.replace("http", "https")), "(--url says where the server is)"),
        (("--url", "https://x", "--ca", str(tmp_path / "bytes")), "--ca, --certificate or --key"),
    ):
        with pytest.raises(OperatorError) as raised:
            asked(*words)
        assert sentence in str(raised.value)
    with pytest.raises(OperatorError, match="refuses that: <html>short and stout"):
        asked("--url", url, path="/tea")
