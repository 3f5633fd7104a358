"""A folder is of one kind, and one job writes to it."""

from pathlib import Path

import pytest

from magnetar.spark_connector.errors import ConnectorError, OptionError
from magnetar.spark_connector.jobs.tables.lock import DELTA, PARQUET, SNAPSHOT, FolderLock


def test_one_job_at_a_time(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, DELTA)
    with pytest.raises(ConnectorError, match="another job is writing there"):
        FolderLock(tmp_path, DELTA)
    first.release()
    FolderLock(tmp_path, DELTA).release()


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ("_jobs/done.json", PARQUET),
        ("_jobs/redo.json", PARQUET),
        ("_delta_log", DELTA),
        ("versions", SNAPSHOT),
    ],
)
def test_a_folder_stays_of_its_kind(tmp_path: Path, mark: str, kind: str) -> None:
    """Its checkpoint says how far a job is: one of another kind would begin there."""
    (tmp_path / mark).mkdir(parents=True)
    FolderLock(tmp_path, kind).release()
    for other in {PARQUET, DELTA, SNAPSHOT} - {kind}:
        with pytest.raises(OptionError, match=f"is {kind}, and cannot be {other} as well"):
            FolderLock(tmp_path, other)
