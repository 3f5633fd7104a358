"""One job at a time writes to a folder."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Final

from magnetar.spark_connector.errors import ConnectorError

OWN: Final = "_jobs"
"""Where jobs keep what is theirs in a table's folder: readers pass over such names."""


class FolderLock:
    """Ends with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        (folder / OWN).mkdir(parents=True, exist_ok=True)
        self._file = (folder / OWN / "lock").open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise ConnectorError(f"{folder}: another job is writing there") from error

    def release(self) -> None:
        self._file.close()
