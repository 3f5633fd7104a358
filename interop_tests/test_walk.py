"""The way of a message that `docs/architecture.md` lists is the one that it takes."""

from __future__ import annotations

import re
from pathlib import Path

from bench.walk import walked

ARCHITECTURE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
HEADING = "## One message from Kafka to Pulsar"
FILES_MAX = 58
"""60 before protocols had forms of their own: the way may only become shorter."""
BY_THE_CLOCK = {
    "core/broker/broker.py",
    "core/link/memory/held_writers.py",
    "bookie/client/refused_runs.py",
    "bookie/server/ledgers/states.py",
    "bookie/client/reader.py",
    "bookie/client/store.py",
    "bookie/format/journal.py",
    "bookie/format/ledger_metadata.py",
    "bookie/server/ledger_ids.py",
    "core/broker/housekeeping.py",
    "core/cluster/owned_record.py",
    "core/kernel/clock.py",
    "core/ledger/cursor/cursor_store.py",
    "core/ledger/formats.py",
    "core/ledger/ledger_owner.py",
    "core/link/keep_alive.py",
    "core/link/readiness/other_tasks.py",
    "core/link/settler.py",
    "core/metadata/embedded.py",
    "wire/pulsar/session/session.py",
}
"""Files of work that is due now and then: a snapshot of a cursor, the keep-alive, housekeeping; and
of trio's turns, which are counted; and of a group of the journal that is not put together by one
compiled call, because two sweeps have filled it.

`bench/walk.py` takes several seconds to tell these from the files that the message visits.
"""


def listed() -> set[str]:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    return {name for name in re.findall(r"`([\w/]+\.py)`", section) if name != "bench/walk.py"}


def test_the_documented_way_of_a_message() -> None:
    passed = set(walked(idle_seconds=0))
    documented = listed()
    assert sorted(documented - passed) == [], "the message does not pass these"
    others = passed - documented - BY_THE_CLOCK
    # MQTT's front has its own clock, and no part in a message from Kafka to Pulsar.
    others = {name for name in others if not name.startswith("wire/mqtt/")}
    assert sorted(others) == [], "the message passes these too"
    assert len(documented) <= FILES_MAX
