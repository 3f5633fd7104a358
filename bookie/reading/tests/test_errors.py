"""What the answers of several bookies are together."""

import pickle

import pytest

from magnetar.bookie.reading.errors import (
    Answer,
    DamagedEntry,
    MissingEntry,
    Trouble,
    UnreachableEntry,
    answer_to,
    unread,
)
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, StorageFailed

MISSING = Answer(Trouble.MISSING, "has no such entry")
DAMAGED = Answer(Trouble.DAMAGED, "cannot read it")
UNREACHABLE = Answer(Trouble.UNREACHABLE, "does not answer")


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([MISSING, MISSING], MissingEntry),
        ([MISSING, DAMAGED], DamagedEntry),
        ([DAMAGED], DamagedEntry),
        ([MISSING, UNREACHABLE], UnreachableEntry),
        ([DAMAGED, UNREACHABLE], UnreachableEntry),
    ],
)
def test_only_all_together_say_that_there_is_none(answers: list[Answer], kind: type) -> None:
    assert type(unread(5, 7, dict(zip("ab", answers, strict=False)))) is kind


def test_they_are_errors_of_the_house() -> None:
    assert issubclass(MissingEntry, EntryNotFound)
    assert issubclass(DamagedEntry, Corrupted)
    assert issubclass(UnreachableEntry, StorageFailed)


def test_the_text_names_every_bookie_and_survives_a_pickle() -> None:
    error = pickle.loads(pickle.dumps(unread(5, 7, {"a:1": MISSING, "b:1": UNREACHABLE})))
    assert (error.ledger_id, error.entry_id) == (5, 7)
    assert str(error) == ("entry 5:7 cannot be read: a:1 has no such entry; b:1 does not answer")


def test_only_two_statuses_say_that_there_is_none() -> None:
    missing = {status for status in Status if answer_to(status).trouble is Trouble.MISSING}
    assert missing == {Status.NO_LEDGER, Status.NO_ENTRY}
    assert answer_to(Status.IO_ERROR).trouble is Trouble.DAMAGED
    assert answer_to(Status.UNKNOWN_LEDGER_STATE).trouble is Trouble.UNREACHABLE
