"""Paths as ZooKeeper stores them. Pure.

ZooKeeper refuses some characters (`PathUtils.validatePath` of 3.9, which counts UTF-16 units, so
that it refuses everything beyond the first 65,536 characters too) and the names `.` and `..`. Such
a character is stored as its number in hexadecimal between two characters that Unicode keeps free of
any meaning, and so is the first of these two. All other names are stored as they are, for tools of
Pulsar and BookKeeper read them.
"""

from __future__ import annotations

import re
from typing import Final

BEGIN: Final = "\ufdd0"
END: Final = "\ufdd1"
_REFUSED: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff" + BEGIN + "]"
)
_ESCAPED: Final = re.compile(f"{BEGIN}([0-9a-f]+){END}")


def encode(path: str) -> str:
    """A path of the port as ZooKeeper takes it."""
    path = _REFUSED.sub(lambda match: _escape(match[0]), path)
    if "/." in path:
        return "/".join(map(_without_dots, path.split("/")))
    return path


def _without_dots(name: str) -> str:
    return "".join(map(_escape, name)) if name in (".", "..") else name


def _escape(character: str) -> str:
    return f"{BEGIN}{ord(character):x}{END}"


def decode(path: str) -> str:
    """The path, or name, that was encoded."""
    if BEGIN not in path:
        return path
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), path)
