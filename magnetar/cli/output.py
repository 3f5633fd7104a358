"""Standard output, whose failures are told from those of other files and of sockets.

A command that prints is of no use without its reader, and ends: `OutputFailed` passes whatever is
around a `click.echo`, up to `main`. A command that changes things prints with `report`, which goes
on without a reader: half a repair is worse than a line that nobody sees.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import Any, Final

import click

READER_GONE: Final = 128 + signal.SIGPIPE
"""The exit code that a shell shows of other tools whose reader is gone."""


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
