"""Log lines: text for people or JSON for machines, on standard error, with a level for each part.

A part is a logger's name: its module's path in the repository (`wire.pulsar.session`,
`bookie.server`, ...), without the prefix `magnetar.` of the installed package.
Fields besides the message come from `extra={"topic": name}` and stay separate in both formats.
Nothing is logged per message.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from magnetar.settings.server import Log

STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""Attributes that every record has; all others come from `extra`."""
ROOMS: Final = ("bookie", "core", "wire")
"""Folders of the repository that are packages in `magnetar`."""


def configure(log: Log, stream: TextIO | None = None) -> None:
    """Send all log lines of the process to `stream` (standard error), in the format of `log`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if log.format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(log.level.upper())
    for part, level in log.levels.items():
        logging.getLogger(_logger(part)).setLevel(level.upper())
    logging.captureWarnings(True)


def _logger(part: str) -> str:
    """The name of a part's logger; loggers of other packages (`hypercorn`) need no prefix."""
    return f"magnetar.{part}" if part.partition(".")[0] in ROOMS else part


def _part(record: logging.LogRecord) -> str:
    first, _, rest = record.name.partition(".")
    ours = first == "magnetar" and rest.partition(".")[0] in ROOMS
    return rest if ours else record.name


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in STANDARD}


class TextLines(logging.Formatter):
    """`2026-01-02T03:04:05.678Z info    magnetar.server: ready  pulsar=127.0.0.1:6650`"""

    def format(self, record: logging.LogRecord) -> str:
        head = (
            f"{_time(record)} {record.levelname.lower():7} {_part(record)}: {record.getMessage()}"
        )
        fields = "".join(f"  {key}={value}" for key, value in _fields(record).items())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return head + fields + trace


class JsonLines(logging.Formatter):
    """One object per line; values that JSON does not have are written as text."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "part": _part(record),
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)
