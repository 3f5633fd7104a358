"""`magnetar scram`: users of SCRAM at a running server, as `kafka-configs` has them."""

from __future__ import annotations

import base64
import secrets
from typing import Any, Final
from urllib.parse import quote

import click

from magnetar.cli.flags import whole_number
from magnetar.cli.printing import print_json
from magnetar.cli.security.admin_server import AdminServer, password, server_options
from magnetar.operator_error import OperatorError

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS: Final = 4096
"""As Kafka's tools."""
SALT_BYTES: Final = 24
USERS: Final = "/admin/v2/scram"


@click.group()
def scram() -> None:
    """Manage the users of SCRAM at a running server, which keeps no password."""


def _add(
    name: str, *, mechanisms: tuple[str, ...], iterations: int, as_json: bool, **server: Any
) -> None:
    from magnetar.core.security.scram import credential_of, salted

    asked = AdminServer(server)
    said = password(name, again=True)
    if not said:
        raise OperatorError("the password is empty")
    for mechanism in mechanisms or MECHANISMS:
        salt = secrets.token_urlsafe(SALT_BYTES).encode()
        found = credential_of(
            mechanism, salted(mechanism, said.encode(), salt, iterations), salt, iterations
        )
        body = {
            "salt": _text(found.salt),
            "storedKey": _text(found.stored_key),
            "serverKey": _text(found.server_key),
            "iterations": iterations,
        }
        asked.ask("PUT", _path(name, mechanism), body)
    _say(f"{name} has a password", name, as_json)


def _remove(name: str, *, mechanisms: tuple[str, ...], as_json: bool, **server: Any) -> None:
    asked = AdminServer(server)
    known = asked.ask("GET", USERS).get(name, [])
    gone = [one for one in known if one in (mechanisms or MECHANISMS)]
    if not gone:
        raise OperatorError(f"{name} has no credential of SCRAM that would be removed")
    for mechanism in gone:
        asked.ask("DELETE", _path(name, mechanism))
    _say(f"removed {', '.join(gone)} of {name}", name, as_json)


def _list(*, as_json: bool, **server: Any) -> None:
    found = AdminServer(server).ask("GET", USERS)
    if as_json:
        print_json(found)
        return
    for name, mechanisms in found.items():
        click.echo(f"{name}  {', '.join(mechanisms)}")


def _path(name: str, mechanism: str) -> str:
    return f"{USERS}/{quote(name, safe='')}/{mechanism}"


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _say(sentence: str, name: str, as_json: bool) -> None:
    if as_json:
        print_json({"user": name})
    else:
        click.echo(sentence)


def _name() -> click.Argument:
    return click.Argument(["name"], metavar="NAME")


def _mechanism() -> click.Option:
    return click.Option(
        ["--mechanism", "mechanisms"],
        type=click.Choice(MECHANISMS),
        multiple=True,
        help="Only this one, not both; may be repeated.",
    )


scram.add_command(
    click.Command(
        "add",
        callback=_add,
        params=[
            _name(),
            _mechanism(),
            click.Option(
                ["--iterations"],
                type=whole_number(ITERATIONS, 16_384),
                default=ITERATIONS,
                show_default=True,
                help="How often the hash is repeated.",
            ),
            *server_options(),
        ],
        help="Set the password of NAME, which is asked for, or the first line of standard input "
        "(the second, if --login reads the first).",
    )
)
scram.add_command(
    click.Command(
        "remove",
        callback=_remove,
        params=[_name(), _mechanism(), *server_options()],
        help="Remove NAME; connections that it has opened end.",
    )
)
scram.add_command(
    click.Command("list", callback=_list, params=server_options(), help="Print the users.")
)
