"""The report of a ready server, for its log and the ready file.

Invariant: the file has a complete report or does not exist; it exists only while the server
listens.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from magnetar.operator_error import OperatorError


class ReadyReport(Struct, frozen=True):
    """Each listener's address as `host:port`, by name: pulsar, kafka, mqtt, http; and with TLS."""

    listeners: Mapping[str, str]


def write_ready_file(path: str, report: ReadyReport) -> None:
    """Write a temporary file and rename it: a reader sees nothing or the whole report."""
    beside = Path(f"{path}.{os.getpid()}")
    try:
        beside.write_text(json.dumps({**report.listeners, "pid": os.getpid()}) + "\n")
        beside.replace(path)
    except OSError as error:
        raise OperatorError(f"cannot write the ready file {path}: {error.strerror}") from None


def remove_ready_file(path: str) -> None:
    """Remove the ready file, if there is one."""
    if not path:
        return
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # `write_ready_file` reports a path that cannot be written
    except OSError as error:
        raise OperatorError(f"cannot remove the ready file {path}: {error.strerror}") from None
