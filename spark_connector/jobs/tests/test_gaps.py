"""Gaps: what is read of ledgers, and what is said of losses."""

import pytest
from msgspec.structs import replace

from magnetar.core.ledger.read.reading_plan import Place
from magnetar.spark_connector.jobs.gaps import Edge, edges, sentence
from magnetar.spark_connector.jobs.inspection import (
    DAMAGED,
    INCOMPLETE,
    JUMP,
    MISSING,
    EntryFinding,
)
from magnetar.spark_connector.tests.plans import plan_with

LOG = "persistent://public/default/t"


def test_edges_are_around_what_is_read() -> None:
    plan = plan_with((5, 50), (4, 40))
    plan = replace(plan, first=Place(10, 2, 20), stable=Place(11, 3, 80))
    assert list(edges({f"{LOG}-partition-3": plan})) == [
        Edge(LOG, 3, 10, 1, None, 20),
        Edge(LOG, 3, 10, 5, 50, None),
        Edge(LOG, 3, 11, -1, None, 50),
        Edge(LOG, 3, 11, 3, 80, None),
    ]


def test_empty_and_compacted_ledgers_have_none() -> None:
    plan = plan_with((0, 0), (4, 40), (0, 0))
    compacted = replace(plan.ledgers[1], kept="17 0 2")
    assert list(edges({LOG: replace(plan, ledgers=[plan.ledgers[0], compacted])})) == []
    assert {one.ledger_id for one in edges({LOG: plan})} == {11}


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (EntryFinding(LOG, 3, 4, 4, MISSING, 7, 9, 0, "why"),
         "entry 3:4 is missing (offsets 7 to 8): why"),
        (EntryFinding(LOG, 3, 4, 1203, DAMAGED, None, None, 0, ""),
         "1,200 entries from 3:4 to 3:1203 are damaged"),
        (EntryFinding(LOG, 3, 4, 4, JUMP, 9, 7, 0, "it jumps"), "entry 3:4: it jumps"),
        (EntryFinding(LOG, 3, 4, 4, INCOMPLETE, 9, 9, 0, ""),
         "entry 3:4 ends a message in chunks that has no row: chunks are missing, or it was sent "
         "twice"),
    ],
)  # fmt: skip
def test_losses_are_told(finding: EntryFinding, said: str) -> None:
    assert sentence(finding) == f"{LOG}: {said}"
