"""Where a snapshot goes on."""

import json

from magnetar.spark_connector.jobs.snapshot import starts
from magnetar.spark_connector.jobs.tables.versions import TableVersion

LOG = "persistent://public/default/t"


def test_the_first_run_begins_at_the_beginning() -> None:
    assert json.loads(starts(None)) == {}


def test_the_next_one_where_the_last_ended() -> None:
    places = {LOG: (5, 6, 70), f"{LOG}2-partition-1": (1, 2, 3), f"{LOG}3": (8, 9, -1)}
    assert json.loads(starts(TableVersion(1, places, 0))) == {
        LOG: 70, f"{LOG}2": {"1": 3}, f"{LOG}3": "8:9",
    }  # fmt: skip
