"""`magnetar access`: who may do what, and one permission more or less, at a running server."""

from __future__ import annotations

import json
import os
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import click

from magnetar.cli.printing import json_option, print_json
from magnetar.operator_error import OperatorError

SECONDS: Final = 30
PERMISSIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")
REFUSED: Final = 1
"""The exit code of `check` if the answer is no."""
TOKEN_VARIABLE: Final = "MAGNETAR_TOKEN"
FURTHER: Final = ("subscription", "host")
PATH: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class AdminClient:
    """Asks the admin interface of one server."""

    def __init__(self, url: str, token_file: Path | None, files: dict[str, Path | None]) -> None:
        self._url = url
        self._parts = urlsplit(url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise OperatorError(f"--url: {url} is no URL such as http://localhost:8080")
        self._token = os.environ.get(TOKEN_VARIABLE, "")
        if token_file is not None:
            self._token = token_file.read_text().strip()
        self._files = files

    def ask(self, method: str, path: str) -> Any:
        """The JSON of an answer; raises `OperatorError` with the server's reason."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = self._connection()
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            raise OperatorError(f"{self._url}: {error}") from error
        finally:
            connection.close()
        if response.status == 401:
            raise OperatorError(
                f"{self._url} wants to know who you are: {_reason(body)} (--token-file, or "
                f"{TOKEN_VARIABLE})"
            )
        if response.status >= 300:
            raise OperatorError(f"{self._url} refuses that: {_reason(body)}")
        return json.loads(body) if body else None

    def _connection(self) -> HTTPConnection:
        """Not `urllib`, which would ask a proxy of the environment for it."""
        where = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(*where, timeout=SECONDS)
        ca, certificate, key = (self._files[name] for name in ("ca", "certificate", "key"))
        try:
            context = ssl.create_default_context(cafile=ca)
            if certificate is not None:
                context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise OperatorError(f"--ca, --certificate or --key: {error}") from error
        return HTTPSConnection(*where, timeout=SECONDS, context=context)


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:200]


def _path(where: str) -> str:
    """The path of a topic or a namespace, `tenant/namespace`."""
    domain, sign, rest = where.rpartition("://")
    parts = rest.split("/", 2)
    if not sign and len(parts) == 1:
        parts = ["public", "default", *parts]
    if len(parts) == 2 and not sign:
        return "/admin/v2/namespaces/" + "/".join(quote(part, safe="") for part in parts)
    if len(parts) != 3 or not all(parts) or (sign and domain not in DOMAINS):
        raise OperatorError(
            f"{where} is neither a topic, as persistent://public/default/orders or orders, nor a "
            "namespace, as public/default"
        )
    local = "/".join(quote(part, safe="") for part in parts)
    return f"/admin/v2/{domain or DOMAINS[0]}/{local}"


DOMAINS: Final = ("persistent", "non-persistent")


@click.group()
def access() -> None:
    """Ask a running server who may do what, and change permissions of topics and namespaces."""


def _grant(role: str, action: str, where: str, *, as_json: bool, **server: Any) -> None:
    _client(server).ask("PUT", f"{_path(where)}/access/{quote(role, safe='')}/{action}")
    _say(f"{role} may {action} {where}", role, action, where, as_json)


def _revoke(role: str, action: str, where: str, *, as_json: bool, **server: Any) -> None:
    _client(server).ask("DELETE", f"{_path(where)}/access/{quote(role, safe='')}/{action}")
    _say(f"{role} has no permission to {action} {where}", role, action, where, as_json)


def _say(sentence: str, role: str, action: str, where: str, as_json: bool) -> None:
    if as_json:
        print_json({"role": role, "action": action, "where": where})
    else:
        click.echo(sentence)


def _check(name: str, action: str, topic: str, *, as_json: bool, **options: Any) -> None:
    path = _path(topic)
    if path.startswith("/admin/v2/namespaces/"):
        raise OperatorError(f"{topic} is a namespace: rights are those of its topics")
    query = [("role", role) for role in (name, *options.pop("roles"))]
    for key, value in (("action", action), *((key, options.pop(key)) for key in FURTHER)):
        if value:
            query.append((key, value))
    found = _client(options).ask("GET", f"{path}/access?{urlencode(query)}")
    if as_json:
        print_json(found)
    else:
        click.echo(f"{'allowed' if found['allowed'] else 'denied'}: {found['rule']}")
    if not found["allowed"]:
        click.get_current_context().exit(REFUSED)


def _client(server: dict[str, Any]) -> AdminClient:
    url, token_file = server.pop("url"), server.pop("token_file")
    return AdminClient(url, token_file, server)


def _server() -> list[click.Parameter]:
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
            help=f"File with the token of a superuser, or of an administrator of the tenant; also "
            f"{TOKEN_VARIABLE}, which has the token itself.",
        ),
        click.Option(["--ca"], type=PATH, help="PEM file with the CA of an https server."),
        click.Option(["--certificate"], type=PATH, help="PEM file with a client certificate."),
        click.Option(["--key"], type=PATH, help="PEM file with the key of the certificate."),
        json_option(),
    ]


def _argument(name: str) -> click.Argument:
    return click.Argument([name], metavar=name.upper())


for _name, _callback, _help in (
    ("grant", _grant, "Permit ROLE an ACTION on WHERE, a topic or a namespace."),
    ("revoke", _revoke, "Take the permission of an ACTION on WHERE from ROLE."),
):
    access.add_command(
        click.Command(
            _name,
            callback=_callback,
            params=[
                _argument("role"),
                click.Argument(["action"], type=click.Choice(PERMISSIONS)),
                _argument("where"),
                *_server(),
            ],
            help=_help,
        )
    )
access.add_command(
    click.Command(
        "check",
        callback=_check,
        params=[
            _argument("name"),
            _argument("action"),
            _argument("topic"),
            click.Option(
                ["--role", "roles"], multiple=True, help="Another role of NAME; may be repeated."
            ),
            click.Option(["--subscription"], default="", help="The subscription to consume by."),
            click.Option(["--host"], default="", help="The address that NAME connects from."),
            *_server(),
        ],
        help="Print whether NAME may do ACTION with TOPIC, and the rule that decides: Pulsar's "
        "words (produce, consume) or Kafka's (read, write, describe, alter). The exit code is 1 if "
        "not.",
    )
)
