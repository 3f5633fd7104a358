"""The admin interface of a running server, for commands: where it is, who asks, and its answers."""

from __future__ import annotations

import base64
import json
import os
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from magnetar.cli.printing import json_option
from magnetar.operator_error import OperatorError

SECONDS: Final = 30
TOKEN_VARIABLE: Final = "MAGNETAR_TOKEN"
PATH: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class AdminServer:
    """One server, and how its caller proves who he is."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Takes the options of `server_options` out of those of a command."""
        self._url = options.pop("url")
        self._parts = urlsplit(self._url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise OperatorError(f"--url: {self._url} is no URL such as http://localhost:8080")
        self._proof = _proof(options.pop("token_file"), options.pop("login"))
        self._files = {name: options.pop(name) for name in ("ca", "certificate", "key")}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer; raises `OperatorError` with the server's reason."""
        headers = {"Authorization": self._proof} if self._proof else {}
        said = None
        if body is not None:
            said, headers["Content-Type"] = json.dumps(body), "application/json"
        connection = self._connection()
        try:
            connection.request(method, path, said, headers)
            response = connection.getresponse()
            answer = response.read()
        except ssl.SSLCertVerificationError as error:
            raise OperatorError(
                f"{self._url}: its certificate is not trusted: {error.verify_message} (--ca)"
            ) from error
        except (OSError, HTTPException) as error:
            raise OperatorError(f"{self._url}: {error} (--url says where the server is)") from error
        finally:
            connection.close()
        if response.status == 401:
            raise OperatorError(
                f"{self._url} wants to know who you are: {_reason(answer)} (--token-file, "
                f"{TOKEN_VARIABLE}, --login, --certificate)"
            )
        if response.status >= 300:
            raise OperatorError(f"{self._url} refuses that: {_reason(answer)}")
        return json.loads(answer) if answer else None

    def _connection(self) -> HTTPConnection:
        """Not `urllib`, which would ask a proxy of the environment for it."""
        where = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(*where, timeout=SECONDS)
        try:
            context = ssl.create_default_context(cafile=self._files["ca"])
            if self._files["certificate"] is not None:
                context.load_cert_chain(self._files["certificate"], self._files["key"])
        except (OSError, ssl.SSLError) as error:
            raise OperatorError(f"--ca, --certificate or --key: {error}") from error
        return HTTPSConnection(*where, timeout=SECONDS, context=context)


def _proof(token_file: Path | None, name: str) -> str:
    """The header that says who asks; empty for none."""
    if name:
        said = f"{name}:{password(name)}"
        return f"Basic {base64.b64encode(said.encode()).decode()}"
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token_file is not None:
        token = token_file.read_bytes().decode("ascii", "replace").strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise OperatorError(f"--token-file: {token_file} holds no token")
    return f"Bearer {token}" if token else ""


def password(name: str, *, again: bool = False) -> str:
    """Asks a person at the terminal; else the first line of standard input."""
    if sys.stdin.isatty():
        return str(click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=again))
    return sys.stdin.readline().rstrip("\r\n")


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:200]


def server_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--url"],
            default="http://localhost:8080",
            show_default=True,
            envvar="MAGNETAR_URL",
            show_envvar=True,
            help="The server's HTTP address.",
        ),
        click.Option(
            ["--token-file"],
            type=PATH,
            help=f"File with your token; also {TOKEN_VARIABLE}, which has the token itself.",
        ),
        click.Option(
            ["--login"],
            default="",
            metavar="NAME",
            help="Your name, if you have a password, which is asked for, or the first line of "
            "standard input.",
        ),
        click.Option(["--ca"], type=PATH, help="PEM file with the CA of an https server."),
        click.Option(["--certificate"], type=PATH, help="PEM file with your certificate."),
        click.Option(["--key"], type=PATH, help="PEM file with the key of the certificate."),
        json_option(),
    ]
