"""`magnetar access`: who may do what, and one permission more or less, at a running server."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

import click

from magnetar.cli.printing import print_json
from magnetar.cli.security.admin_server import AdminServer, server_options
from magnetar.core.security.identity import is_name
from magnetar.operator_error import OperatorError

PERMISSIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")
IN_KAFKAS_WORDS: Final = {"write": "produce", "read": "consume"}
REFUSED: Final = 1
"""The exit code of `check` if the answer is no."""
FURTHER: Final = ("subscription", "host")
DOMAINS: Final = ("persistent", "non-persistent")


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


@click.group()
def access() -> None:
    """Ask a running server who may do what, and change permissions of topics and namespaces."""


def _grant(role: str, action: str, where: str, *, as_json: bool, **server: Any) -> None:
    action = IN_KAFKAS_WORDS.get(action, action)
    AdminServer(server).ask("PUT", _permission(role, action, where))
    _say(f"{role} may {action} {where}", role, action, where, as_json)


def _revoke(role: str, action: str, where: str, *, as_json: bool, **server: Any) -> None:
    action, asked = IN_KAFKAS_WORDS.get(action, action), AdminServer(server)
    asked.ask("DELETE", _permission(role, action, where))
    sentence = f"the permission to {action} {where} is not {role}'s any more"
    if not _is_namespace(where):
        query = urlencode({"role": role, "action": action})
        found = asked.ask("GET", f"{_path(where)}/access?{query}")
        if found["allowed"]:
            sentence += f", who still may, by {found['rule']}"
    _say(sentence, role, action, where, as_json)


def _permission(role: str, action: str, where: str) -> str:
    """The path of one permission."""
    if not is_name(role):
        raise OperatorError(f"{role!r} is no role")
    return f"{_path(where)}/access/{quote(role, safe='')}/{action}"


def _is_namespace(where: str) -> bool:
    return _path(where).startswith("/admin/v2/namespaces/")


def _say(sentence: str, role: str, action: str, where: str, as_json: bool) -> None:
    if as_json:
        print_json({"role": role, "action": action, "where": where})
    else:
        click.echo(sentence)


def _check(name: str, action: str, topic: str, *, as_json: bool, **options: Any) -> None:
    path = _path(topic)
    if _is_namespace(topic):
        raise OperatorError(f"{topic} is a namespace: rights are those of its topics")
    query = [("role", role) for role in (name, *options.pop("roles"))]
    for key, value in (("action", action), *((key, options.pop(key)) for key in FURTHER)):
        if value:
            query.append((key, value))
    found = AdminServer(options).ask("GET", f"{path}/access?{urlencode(query)}")
    if as_json:
        print_json(found)
    else:
        click.echo(f"{'allowed' if found['allowed'] else 'denied'}: {found['rule']}")
    if not found["allowed"]:
        click.get_current_context().exit(REFUSED)


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
                click.Argument(["action"], type=click.Choice([*PERMISSIONS, *IN_KAFKAS_WORDS])),
                _argument("where"),
                *server_options(),
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
            *server_options(),
        ],
        help="Print whether NAME may do ACTION with TOPIC, and the rule that decides: Pulsar's "
        "words (produce, consume) or Kafka's (read, write, describe, alter). The exit code is 1 if "
        "not.",
    )
)
