"""Why an entry could not be read from any of its bookies. Pure.

    MissingEntry      each of them says that it does not have it: there is no such entry
    DamagedEntry      those that have it have something else, or cannot read it
    UnreachableEntry  one of them has not said anything that counts: trying again may help

The text names each bookie with its answer.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.errors import Corrupted, EntryNotFound, StorageFailed


class Trouble(enum.Enum):
    """What kind of answer a bookie gave."""

    MISSING = "missing"
    DAMAGED = "damaged"
    UNREACHABLE = "unreachable"


class Answer(Struct, frozen=True):
    """The answer of one bookie that did not give the entry."""

    trouble: Trouble
    text: str


MISSING_STATUSES: Final = (Status.NO_LEDGER, Status.NO_ENTRY)


def answer_to(status: Status) -> Answer:
    """The answer that a status is.

    A bookie that finds damage says i/o error, and never that there is no such entry. What may be
    there all the same (`UNKNOWN_LEDGER_STATE`, a refusal) is as if the bookie could not be reached.
    """
    if status in MISSING_STATUSES:
        return Answer(Trouble.MISSING, f"has {status.value}")
    if status is Status.IO_ERROR:
        return Answer(Trouble.DAMAGED, "cannot read it")
    return Answer(Trouble.UNREACHABLE, f"answers: {status.value}")


class UnreadEntry(Exception):
    """An entry that none of its bookies gave, with the answer of each."""

    def __init__(self, ledger_id: int, entry_id: int, answers: Mapping[str, Answer]) -> None:
        super().__init__(ledger_id, entry_id, answers)
        self.ledger_id, self.entry_id, self.answers = ledger_id, entry_id, answers

    def __str__(self) -> str:
        told = "; ".join(f"{bookie} {answer.text}" for bookie, answer in self.answers.items())
        return f"entry {self.ledger_id}:{self.entry_id} cannot be read: {told}"


class MissingEntry(UnreadEntry, EntryNotFound):
    """There is no such entry."""


class DamagedEntry(UnreadEntry, Corrupted):
    """No replica of the entry is intact."""


class UnreachableEntry(UnreadEntry, StorageFailed):
    """The entry may be there, on a bookie that cannot be asked now."""


def unread(ledger_id: int, entry_id: int, answers: Mapping[str, Answer]) -> UnreadEntry:
    """The error that the answers of all bookies of an entry are together."""
    troubles = {answer.trouble for answer in answers.values()}
    if Trouble.UNREACHABLE in troubles:
        return UnreachableEntry(ledger_id, entry_id, answers)
    if troubles == {Trouble.MISSING}:
        return MissingEntry(ledger_id, entry_id, answers)
    return DamagedEntry(ledger_id, entry_id, answers)
