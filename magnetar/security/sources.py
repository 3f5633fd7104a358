"""Where keys and passwords are read from, and read again when they change.

    a path, file:///path            a file
    data:;base64,...  data:,...     the setting itself

Invariants: a value that cannot be read at the start ends it with a sentence. Later the last good
one stays in force, and the log says so. A value is in no message.
"""

import base64
import binascii
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from magnetar.operator_error import OperatorError

log = logging.getLogger(__name__)

BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a file with keys or passwords."""
LOOK_SECONDS: Final = 1.0
NO_SECRETS: Final = ("security.token_public_key", "security.token_jwks", "mqtt.acl_file")
"""Settings whose files others may read."""


def read_data_url(url: str) -> bytes:
    """What a `data:` URL holds (RFC 2397); raises ValueError."""
    head, comma, body = url.removeprefix("data:").partition(",")
    if not comma:
        raise ValueError("a data: URL has a comma before its data")
    raw = unquote_to_bytes(body)
    if not head.endswith(";base64"):
        return raw
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        raise ValueError("its data is no base64") from error


class SecretSource:
    """One setting that names a key or a file of passwords."""

    def __init__(self, setting: str, where: str, take: Callable[[bytes], None]) -> None:
        """`take` puts a value in force; it raises ValueError, with a sentence, if it cannot."""
        self.setting = setting
        self._where = where
        self._take = take
        self._path = None if where.startswith("data:") else Path(where.removeprefix("file://"))
        self._seen: tuple[int, int, int] | None = None
        self._coming: tuple[int, int, int] | None = None
        """What was found once, and not before: it may be still being written."""

    def open(self) -> None:
        """Read for the first time; raises `OperatorError`."""
        try:
            if self._path is None:
                self._take(read_data_url(self._where))
            else:
                self._seen = file_identity(self._path)
                warn_if_others_read(self.setting, self._path)
                self._take(self._read(self._path))
        except OSError as error:
            raise OperatorError(
                f"{self.setting}: cannot read {self._where}: {error.strerror}"
            ) from None
        except ValueError as error:
            named = "the data: URL" if self._path is None else self._where
            raise OperatorError(f"{self.setting}: {named}: {error}") from None

    def look(self) -> None:
        """Read again if the file has changed, and is the same as at the last look; what is wrong is
        logged once for each change.
        """
        if self._path is None:
            return
        try:
            found = file_identity(self._path)
            coming, self._coming = self._coming, found
            if found == self._seen or found != coming:
                return
            self._seen = found
            self._take(self._read(self._path))
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            if self._seen is not None:
                log.error("%s: %s is not taken, what it held before stays in force: %s",
                          self.setting, self._path, said)  # fmt: skip
            if isinstance(error, OSError):
                self._seen = None
            return
        log.info("%s: %s has changed and is read again", self.setting, self._path)

    def _read(self, path: Path) -> bytes:
        with path.open("rb") as file:
            found = file.read(BYTES_MAX + 1)
        if len(found) > BYTES_MAX:
            raise ValueError(f"it has more than {BYTES_MAX} bytes")
        return found


def file_identity(path: Path) -> tuple[int, int, int]:
    """What differs after a file was written or replaced."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def warn_if_others_read(setting: str, path: Path) -> None:
    """Secrets that others may read are no secrets."""
    mode = path.stat().st_mode
    if mode & (stat.S_IRGRP | stat.S_IROTH) and setting not in NO_SECRETS:
        log.warning(
            "%s: others may read %s (mode %o): run chmod 600 on it",
            setting, path, stat.S_IMODE(mode),
        )  # fmt: skip


def owner_only(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
