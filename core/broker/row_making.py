"""The rows of some partitions for `kept_rows.py`, compiled: a query may ask for ten thousand.

Plain calls, so that a row and its notice fit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from magnetar.core.ledger.log.change_notice import COUNTED, KEPT, MARKED
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.log.planning import LedgerIds, encoded_rows, ledgers_of
from magnetar.core.ledger.log.row_numbers import ROW_SIZE, ledger_of, rows_text
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic

NO_LOG: Final = b"null"
NO_LEDGERS: Final[LedgerIds] = ()


def open_topics(topics: Mapping[str, Topic], names: Sequence[str]) -> list[PersistentTopic | None]:
    """Those of that name that are loaded, store their messages, and are not being unloaded."""
    loaded = [topics.get(name) for name in names]
    stored = [None if topic is None else topic.stored for topic in loaded]
    return [None if topic is None or topic.fenced else topic for topic in stored]


class Rows:
    """The rows of consecutive partitions, as text or as numbers (`core/ledger/log/row_numbers.py`),
    and the ledgers that store each.
    """

    __slots__ = ("_ledgers", "_numbers", "_texts", "dropped", "marks")

    def __init__(self) -> None:
        self.dropped = False
        """Whether they are not kept any more, but for who is at work with them."""
        self.marks = bytearray()
        self._texts: list[bytes] = []
        self._ledgers: list[LedgerIds] = []
        self._numbers = bytearray()

    def __len__(self) -> int:
        return len(self.marks)

    def extend(self, number: int) -> None:
        """Have so many rows; those that are new are to be made."""
        more = number - len(self.marks)
        self.marks.extend(bytes([MARKED]) * more)
        self._texts.extend([NO_LOG] * more)
        self._ledgers.extend([NO_LEDGERS] * more)
        self._numbers.extend(bytes(ROW_SIZE * more))

    def drop(self) -> None:
        """Be kept no longer: no log writes here any more."""
        self.dropped = True
        marks, numbers = self.marks, self._numbers
        self.marks, self._numbers = bytearray(marks), bytearray(numbers)
        marks.clear()
        numbers.clear()

    def follow(self, number: int, log: ManagedLedger, mark: int) -> None:
        """Hear of the log's changes."""
        if not self.dropped:
            log.notice.ask(self.marks, self._numbers, number, mark)

    def make(self, numbers: Sequence[int], topics: Sequence[PersistentTopic | None]) -> int:
        """Make the rows of those numbers of the topics as they are now; None is one that does not
        exist. Returns by how many bytes the texts have grown.
        """
        logs = [topic.ledger for topic in topics if topic is not None]
        made, place, grown = encoded_rows(logs), 0, 0
        for number, topic in zip(numbers, topics, strict=True):
            self.marks[number] = MARKED  # whoever overtook us may have seen another topic
            row, of_row = NO_LOG, NO_LEDGERS
            if topic is not None:
                log, row = logs[place], made[place]
                place += 1
                of_row = ledgers_of(log)
                if log.at_rest and not topic.fenced:
                    self.follow(number, log, KEPT)
            grown += len(row) - len(self._texts[number])
            self._texts[number], self._ledgers[number] = row, of_row
        return grown

    def text(self) -> bytes:
        """All rows with commas between."""
        return rows_text(self._texts, self.marks, self._numbers)

    def text_of(self, number: int) -> bytes:
        """One row."""
        mark, begin = self.marks[number], number * ROW_SIZE
        numbers = self._numbers[begin : begin + ROW_SIZE]
        return rows_text([self._texts[number]], bytearray([mark]), numbers)

    def stored_here(self, first: int, asked: Sequence[tuple[int, int]]) -> list[int]:
        """Those of the ledgers, as (partition, ledger), that the partitions have of which they are
        asked; the rows are those from partition `first` on.
        """
        stored: list[int] = []
        for partition, ledger in asked:
            number = partition - first
            if self.marks[number] == COUNTED:
                if ledger == ledger_of(self._numbers, number):
                    stored.append(ledger)
            elif ledger in self._ledgers[number]:
                stored.append(ledger)
        return stored
