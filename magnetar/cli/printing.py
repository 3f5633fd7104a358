"""What commands that look at storage have in common: JSON, progress, errors.

Invariant: standard output has what was asked for, and nothing else: progress and remarks go to
standard error, and progress only where a person waits for it.

A command that prints is of no use without its reader, and ends: `OutputFailed` passes whatever is
around a `click.echo`, up to `main`. A command that changes things prints with `report`, which goes
on without a reader: half a repair is worse than a line that nobody sees.
"""

import errno
import io
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from magnetar.operator_error import OperatorError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

FOUND_DAMAGE = 1
"""The exit code of a command that did what it was asked for, and found damage."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

READER_GONE: Final = 128 + signal.SIGPIPE
"""The exit code that a shell shows of other tools whose reader is gone."""


def json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs.")


def print_json(value: Any) -> None:
    """One value as one line."""
    click.echo(json_line(value))


def json_line(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value)


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


class OutputFailed(Exception):
    """The reader of standard output is gone, or what it is written to is full. No `OSError`, since
    those are of what the command works on.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"standard output: {cause.strerror}")
        self.reader_is_gone = cause.errno == errno.EPIPE


class _StandardOutput(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputFailed(error) from error


def open_output() -> None:
    """Have failures of standard output raise `OutputFailed`."""
    former = sys.stdout
    if former is None or former.isatty():  # closed; or a terminal, whose end is a signal
        return
    raw = _StandardOutput(former.fileno(), "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), former.encoding, former.errors, write_through=True
    )


def discard() -> None:
    """Lose what is printed from now on, and what is not written yet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def print_warnings() -> None:
    """Have warnings of the storage tier printed on standard error: it logs them."""
    logging.basicConfig(format="magnetar: %(message)s", level=logging.WARNING)


def report(line: str | bytes) -> None:
    """Print a line of a command that changes things."""
    try:
        click.echo(line)
    except OutputFailed as failure:
        discard()
        remark(f"{failure}: the work goes on without it")


def remark(text: str) -> None:
    """One sentence on standard error, which may have lost its reader too."""
    try:
        click.echo(f"magnetar: {text}", err=True)
    except OSError:
        return
