"""One job at a time writes to a folder."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Final

from magnetar.spark_connector.errors import ConnectorError, OptionError

OWN: Final = "_jobs"
"""Where jobs keep what is theirs in a table's folder: readers pass over such names."""
PARQUET: Final = "a table of Parquet files"
DELTA: Final = "a Delta table"
SNAPSHOT: Final = "a snapshot"
_MARKS: Final = {
    f"{OWN}/done.json": PARQUET,
    f"{OWN}/redo.json": PARQUET,
    "_delta_log": DELTA,
    "versions": SNAPSHOT,
}
"""By which a folder is told that a job has written to."""


class FolderLock:
    """Ends with the process, however that ends. A folder stays of the kind that it is: a checkpoint
    in it says how far its job is, whatever the kind, so the next one would leave that out.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        for mark, other in _MARKS.items():
            if other != kind and (folder / mark).exists():
                raise OptionError(f"{folder} is {other}, and cannot be {kind} as well")
        (folder / OWN).mkdir(parents=True, exist_ok=True)
        self._file = (folder / OWN / "lock").open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise ConnectorError(f"{folder}: another job is writing there") from error

    def release(self) -> None:
        self._file.close()
