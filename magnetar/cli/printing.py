"""What commands that look at storage have in common: JSON, progress, errors.

Invariant: standard output has what was asked for, and nothing else: progress and remarks go to
standard error, and progress only where a person waits for it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

FOUND_DAMAGE = 1
"""The exit code of a command that did what it was asked for, and found damage."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs.")


def print_json(value: Any) -> None:
    """One value as one line."""
    import msgspec

    click.echo(msgspec.json.encode(value))


@contextmanager
def sentences() -> Iterator[None]:
    """Errors of the storage tier as sentences for the operator."""
    from magnetar.core.kernel.errors import BrokerError

    try:
        yield
    except (BrokerError, OSError) as error:
        raise OperatorError(str(error)) from error


def progress(length: int, label: str, output: bool = True) -> "ProgressBar[Any]":
    """A bar on a terminal, unless the `output` would be written across it."""
    shown = sys.stderr.isatty() and not (output and sys.stdout.isatty())
    return click.progressbar(length=length, label=label, file=sys.stderr, hidden=not shown)
