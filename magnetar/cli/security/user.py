"""`magnetar user`: the people of an htpasswd file, for `security.htpasswd`."""

import sys
from pathlib import Path

import click

from magnetar.cli.printing import json_option
from magnetar.operator_error import OperatorError
from magnetar.security.sources import owner_only

FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
NAME = click.argument("name")
FROM_STDIN = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input."
)


@click.group()
def user() -> None:
    """Manage names and passwords in a file of htpasswd's form, which servers read again."""


@user.command()
@FILE
@NAME
@FROM_STDIN
def add(file: Path, name: str, *, password_stdin: bool) -> None:
    """Add somebody to FILE, which is made if it is not there."""
    people = _people(file) if file.exists() else {}
    if name in people:
        raise OperatorError(f"{name} is in {file}; `magnetar user passwd` sets another password")
    _put(file, people, name, password_stdin=password_stdin)
    click.echo(f"added {name}")


@user.command()
@FILE
@NAME
@FROM_STDIN
def passwd(file: Path, name: str, *, password_stdin: bool) -> None:
    """Set somebody's password."""
    people = _people(file)
    _known(file, people, name)
    _put(file, people, name, password_stdin=password_stdin)
    click.echo(f"{name} has another password")


@user.command()
@FILE
@NAME
def remove(file: Path, name: str) -> None:
    """Remove somebody; a server that uses FILE disconnects him."""
    people = _people(file)
    _known(file, people, name)
    del people[name]
    _write(file, people)
    click.echo(f"removed {name}")


@user.command("list")
@FILE
def list_people(file: Path, *, as_json: bool) -> None:
    """Print the names."""
    names = sorted(_people(file))
    if as_json:
        import json

        click.echo(json.dumps(names))
    else:
        for name in names:
            click.echo(name)


list_people.params.append(json_option())


def _known(file: Path, people: dict[str, str], name: str) -> None:
    if name not in people:
        raise OperatorError(f"{name} is not in {file}")


def _people(file: Path) -> dict[str, str]:
    from magnetar.core.security.htpasswd.passwords import people_in

    try:
        found, wrong = people_in(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperatorError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise OperatorError(f"{file} is not UTF-8 text") from None
    if wrong:
        raise OperatorError(f"{file}: {wrong[0]}")
    return found


def _put(file: Path, people: dict[str, str], name: str, *, password_stdin: bool) -> None:
    from magnetar.core.security.htpasswd.password_hashes import new_hash
    from magnetar.core.security.identity import is_name

    if not is_name(name) or ":" in name or name.startswith("#"):
        raise OperatorError("a name is printable, without a colon, and does not begin with #")
    password = (
        sys.stdin.readline().rstrip("\r\n")
        if password_stdin
        else click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    )
    try:
        people[name] = new_hash(password)
    except ValueError as error:
        raise OperatorError(str(error)) from None
    _write(file, people)


def _write(file: Path, people: dict[str, str]) -> None:
    text = "".join([f"{name}:{stored}\n" for name, stored in people.items()])
    try:
        owner_only(file, text.encode())
    except OSError as error:
        raise OperatorError(f"cannot write {file}: {error.strerror}") from None
