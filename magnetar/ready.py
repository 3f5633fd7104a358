"""What a server says when it is ready, in its log and in the ready file.

Invariant: the file holds a whole report or does not exist; it exists only while the server listens.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from magnetar.operator_error import OperatorError


class ReadyReport(Struct, frozen=True):
    """Each listener's address as `host:port`, by name: pulsar, kafka, http, and each with TLS."""

    listeners: Mapping[str, str]


def write_ready_file(path: str, report: ReadyReport) -> None:
    """Write beside, then rename: a reader sees nothing or everything."""
    beside = Path(f"{path}.{os.getpid()}")
    try:
        beside.write_text(json.dumps({**report.listeners, "pid": os.getpid()}) + "\n")
        beside.replace(path)
    except OSError as error:
        raise OperatorError(f"cannot write the ready file {path}: {error.strerror}") from None


def remove_ready_file(path: str) -> None:
    """Take it away, if there is one."""
    if not path:
        return
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # where it could not be written, `write_ready_file` says so
    except OSError as error:
        raise OperatorError(f"cannot remove the ready file {path}: {error.strerror}") from None
